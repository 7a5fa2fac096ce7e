"""Which language model is wanted, and how much of the machine it may take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

BackendName = Literal["off", "auto", "local", "small", "endpoint"]


@dataclass(frozen=True, slots=True)
class BackendSettings:
    """What `backend_for` goes by; the server's settings and the command line's options both come down to this."""

    backend: BackendName = "auto"
    """`local`: a model of CodeLlama's size or `model`; `small`: the one that comes inside a package; `endpoint`: asked
    over HTTP. `auto`: the endpoint if one is named, else a local model that is on this machine and fits, else the
    small one. Nothing is ever downloaded."""
    model: str = ""
    """A folder, or a name in the model cache or at the endpoint; "" to choose by free memory."""
    adapter: str = ""
    """A folder that peft reads; "" for the one shipped, where the model is the small one, else none."""
    endpoint_url: str = ""
    """Base of an OpenAI-compatible interface: "http://localhost:8000/v1"."""
    key_variable: str = ""
    """The environment variable that holds the endpoint's key; "" to send none."""
    memory_limit_bytes: int = 0
    """What loading and running it may take; 0 for what is free."""
