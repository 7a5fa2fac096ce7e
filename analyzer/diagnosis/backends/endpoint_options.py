"""Which endpoint is asked, and how patiently. Reading this needs no HTTP library, so settings can be checked early."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from .base import BackendError

CHAT = "/chat/completions"
MODELS = "/models"
DEFAULT_PATH = "/v1"
"""Where vLLM, the llama.cpp server and Ollama serve this interface."""
_NO_ADDRESS = "the endpoint's address must read like http://localhost:8000/v1 or https://host/v1"
WHAT_IS_SENT = (
    "the finding's message and figures, names of operators, modules and files in the trace, the source of the function "
    "that the finding lies in, the device and torch's version"
)
"""All that leaves this process for an endpoint, beside the name of the model and the schema of the answer."""


@dataclass(frozen=True, slots=True)
class EndpointOptions:
    """An OpenAI-compatible server: vLLM, the llama.cpp server, Ollama, or one that speaks like them."""

    url: str
    """Of its interface, as "http://localhost:8000/v1"; http or https."""
    model: str = ""
    """As the server calls it; empty for the first that it lists."""
    key_variable: str = ""
    """The environment variable that holds the key; empty for none. The key itself is nowhere else."""
    prompt_budget: int = 2000
    """Tokens that a prompt may have."""
    timeout_s: float = 120.0
    """For one whole answer, with all tries."""
    stall_s: float = 30.0
    """Without a new token, once there was one."""
    most_tries: int = 4
    """Of a request that met a busy or broken server."""
    first_wait_s: float = 0.5
    """Before the second try; each later wait is twice as long."""
    longest_wait_s: float = 30.0
    """Between two tries; a server that asks for more is given up."""


def base_url(url: str) -> str:
    """The address below which the interface lies. Raises BackendError for one that is no plain http(s) address."""
    try:
        parts = urlsplit(url.strip())
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise BackendError(_NO_ADDRESS) from None
    if not is_address:
        raise BackendError(_NO_ADDRESS)
    if parts.username is not None or parts.query or parts.fragment:
        raise BackendError(
            "the endpoint's address must hold no user, password, query or fragment; "
            "a key is read from an environment variable"
        )
    path = parts.path.rstrip("/").removesuffix(CHAT) or DEFAULT_PATH
    return SplitResult(parts.scheme, parts.netloc, path, "", "").geturl()


def is_on_this_machine(url: str) -> bool:
    """Whether what is sent there stays on this machine."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
