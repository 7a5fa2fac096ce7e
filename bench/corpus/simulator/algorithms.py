"""How a library comes by a convolution's algorithm: by rules of thumb, or by trying all that could do.

Names as cuDNN's and MIOpen's kernels have them. What a guess costs is set after reports of two to three times the time
for single layers (pytorch/pytorch issues on `cudnn.benchmark`); most guesses are right.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

from torchtraceap.analyzer.trace.model import Dims

from .hardware import Hardware

TRIED_EACH_TIME = "cudnn-autotune-thrash"
"""The job's setting that every call meets a size that is new."""
_WRONG_PER_CENT = 45
_TYPES = {"float": "float", "c10::Half": "__half", "c10::BFloat16": "__nv_bfloat16"}


@dataclass(frozen=True, slots=True)
class Guess:
    """A generic algorithm where a faster one exists."""

    name: str
    rate: float
    """Of the rate that the right one has."""


def guess(hardware: Hardware, data: Dims, weight: Dims, kind: str, dtype: str) -> Guess | None:
    """What rules of thumb choose for a convolution; None where they are right. The same for the same sizes."""
    drawn = zlib.crc32(repr((data[1:], weight, kind)).encode())
    if drawn % 100 >= _WRONG_PER_CENT:
        return None
    rate = 0.3 + 0.3 * (drawn // 100 % 64) / 63
    return Guess(_generic(hardware, kind, dtype)[drawn // 6400 % 3], rate)


def tried(hardware: Hardware, data: Dims, weight: Dims, kind: str, dtype: str) -> tuple[Guess, ...]:
    """What a trial runs before it knows the right one."""
    drawn = zlib.crc32(repr((data, weight, kind)).encode())
    generic = _generic(hardware, kind, dtype)
    count = 3 + drawn % 4
    return tuple(
        Guess(f"{generic[k % 3]}{'' if k < 3 else f' [{k}]'}", 0.25 + 0.1 * ((drawn >> k) % 7)) for k in range(count)
    )


def _generic(hardware: Hardware, kind: str, dtype: str) -> tuple[str, str, str]:
    if hardware.is_amd:
        direction = {"fprop": "fwd", "dgrad": "bwd", "wgrad": "wrw"}[kind]
        return ("Im2Col", f"naive_conv_nonpacked_{direction}_nchw_fp32_fp32_fp32", "MIOpenIm2Col")
    element = _TYPES.get(dtype, "float")
    return (
        f"void implicit_convolve_sgemm<{element}, {element}, 1024, 5, 5, 3, 3, 3, 1, false, false, true>(int, int)",
        f"void precomputed_convolve_sgemm<{element}, 1024, 5, 5, 4, 3, 3, 1, false>(int, int, int)",
        f"void explicit_convolve_sgemm<{element}, int, 1024, 5, 5, 3, 3, 3, 0, false>(int, int, int)",
    )
