"""What else a reader must know of a run: versions, device, precision, environment, and the sources that ran."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import sys
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

from ...analyzer.trace.recording import Precision
from .own import OwnFiles

_TELLING = re.compile(
    r"(CUDA|CUBLAS|CUDNN|NVIDIA|NCCL|GLOO|TORCH|PYTORCH|HIP|ROCR|MIOPEN|OMP|MKL|KMP|GOMP|OPENBLAS|TRITON|INDUCTOR|ACCELERATE"
    r"|MALLOC|LD_PRELOAD)"
)
_SECRET = re.compile(r"TOKEN|KEY|SECRET|PASSW|CREDENTIAL|AUTH")
_OURS = "TORCHTRACEAP"
_MOST_SOURCE_BYTES = 8 << 20


def environment() -> dict[str, str]:
    """The variables that change how torch runs. Nothing whose name sounds like a secret."""
    return {
        name: value
        for name, value in sorted(os.environ.items())
        if _TELLING.match(name) and not _SECRET.search(name) and not name.startswith(_OURS)
    }


def own_version() -> str:
    """Of torchtraceap."""
    try:
        return metadata.version("torchtraceap")
    except metadata.PackageNotFoundError:
        return ""


def python_version() -> str:
    """Of the program's Python."""
    return platform.python_version()


def versions() -> tuple[str, str, str]:
    """Of torch, CUDA (or ROCm) and cuDNN; "" for what is not there."""
    import torch

    cuda = torch.version.cuda or getattr(torch.version, "hip", None) or ""
    cudnn = torch.backends.cudnn.version() if torch.backends.cudnn.is_available() else None
    return str(torch.__version__), str(cuda), str(cudnn or "")


def device_name() -> str:
    """The device that the program can use: the current GPU's name, else the processor's."""
    import torch

    if torch.cuda.is_available() and torch.cuda.is_initialized():
        return torch.cuda.get_device_name()
    return f"CPU ({_processor()}, {torch.get_num_threads()} threads)"


def precision(autocast: str) -> Precision:
    """The switches as they are now."""
    import torch

    is_cuda = torch.cuda.is_available()
    return Precision(
        matmul_tf32=_flag(torch.backends.cuda.matmul, "allow_tf32") if is_cuda else None,
        cudnn_tf32=_flag(torch.backends.cudnn, "allow_tf32") if is_cuda else None,
        cudnn_benchmark=_flag(torch.backends.cudnn, "benchmark") if is_cuda else None,
        cudnn_deterministic=_flag(torch.backends.cudnn, "deterministic") if is_cuda else None,
        float32_matmul_precision=_float32_precision(),
        autocast=autocast,
    )


def rank_and_world() -> tuple[int, int]:
    """This process's rank (-1 outside a distributed run) and how many there are."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    rank, world = os.environ.get("RANK", ""), os.environ.get("WORLD_SIZE", "")
    return (int(rank), int(world)) if rank.isdigit() and world.isdigit() else (-1, 1)


def source_hashes(names: Iterable[str], files: OwnFiles) -> dict[str, str]:
    """git's hash of the content of every file of the program's own, by the name shown."""
    found: dict[str, str] = {}
    for name in names:
        if not files.is_own(name):
            continue
        try:
            path = Path(files.full(name))
            if path.stat().st_size <= _MOST_SOURCE_BYTES:
                found[files.shown(name)] = blob_hash(path.read_bytes())
        except OSError:
            continue  # gone since it ran
    return found


def blob_hash(content: bytes) -> str:
    """As `git hash-object`."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _flag(owner: Any, name: str) -> bool | None:
    """A switch; None where torch has none, or where reading it the old way is refused."""
    try:
        return bool(getattr(owner, name))
    except (AttributeError, RuntimeError):
        return None


def _float32_precision() -> str:
    import torch

    try:
        return torch.get_float32_matmul_precision()
    except RuntimeError:
        return ""


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text("utf-8", errors="replace")
    except OSError:
        return platform.processor() or platform.machine()
    match = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return match[1].strip() if match else platform.machine()
