"""What computes a fused attention: by the operators inside it, and by the kernels it launches."""

from __future__ import annotations

import re
from enum import Enum

from ..trace.model import IntArray
from .model import KernelClass, Timeline
from .select import launched_by

FUSED = (
    "aten::scaled_dot_product_attention",
    "aten::_scaled_dot_product_flash_attention",
    "aten::_scaled_dot_product_efficient_attention",
    "aten::_scaled_dot_product_cudnn_attention",
    "aten::_scaled_dot_product_flash_attention_for_cpu",
    "aten::_scaled_dot_product_fused_attention_overrideable",
    "aten::_flash_attention_forward",
    "aten::_efficient_attention_forward",
    "flash_attn::_flash_attn_forward",
    "flash_attn_3::fwd",
    "xformers::efficient_attention_forward_cutlass",
    "xformers_flash::flash_fwd",
    "FlashAttnFunc",
    "FlexAttentionHOP",
    "flex_attention",
)
"""Operators that are a whole attention, most of them calls of one kernel."""


class Backend(str, Enum):
    """What computes an attention."""

    FLASH = "flash"
    EFFICIENT = "efficient"
    CUDNN = "cudnn"
    MATH = "math"
    """`scaled_dot_product_attention` in separate passes, as no fused kernel takes its inputs."""
    UNFUSED = "unfused"
    """Separate operators in the program."""
    TRITON = "triton"
    CK = "ck"
    OTHER = "other"


_BACKEND_OF_OPERATOR = (
    (re.compile(r"attention_math"), Backend.MATH),
    (re.compile(r"cudnn"), Backend.CUDNN),
    (re.compile(r"efficient"), Backend.EFFICIENT),
    (re.compile(r"flex|Flex"), Backend.TRITON),
    (re.compile(r"flash|Flash"), Backend.FLASH),
)
_BACKEND_OF_KERNEL = (
    (re.compile(r"ck_tile|\bck::|FmhaFwd\w*Kernel|fmha_fwd_d\d+"), Backend.CK),
    (re.compile(r"^attn_fwd|^triton|^_fwd_kernel|^bwd_kernel_dk"), Backend.TRITON),
    (re.compile(r"cudnn|sdpa_sm\d+"), Backend.CUDNN),
    (re.compile(r"fmha_cutlass|AttentionKernel"), Backend.EFFICIENT),
    (re.compile(r"flash"), Backend.FLASH),
)


def backends_of(timeline: Timeline, fused: IntArray) -> list[Backend]:
    """What computes each fused attention: by the kernels it launched, else by the operators inside it."""
    trace = timeline.trace
    found: list[Backend] = []
    launched = launched_by(timeline, fused)
    for row, kernels in zip(fused.tolist(), launched, strict=True):
        operators = [row]
        for operator in operators:
            operators += timeline.tree.children(operator).tolist()
        names = [trace.name_of(operator) for operator in operators]
        attending = kernels[timeline.kernel_class[kernels] == KernelClass.ATTENTION]
        by_name = _first(_BACKEND_OF_OPERATOR, names)
        by_kernel = _first(_BACKEND_OF_KERNEL, [trace.name_of(kernel) for kernel in attending.tolist()])
        # An operator's name says which way PyTorch went; on AMD two libraries may be behind the same one.
        is_told = by_name is not None and by_kernel not in (Backend.CK, Backend.TRITON)
        found.append((by_name if is_told else by_kernel or by_name) or Backend.OTHER)
    return found


def _first(table: tuple[tuple[re.Pattern[str], Backend], ...], names: list[str]) -> Backend | None:
    return next((backend for pattern, backend in table if any(pattern.search(name) for name in names)), None)


def backend_of_kernel(name: str) -> Backend:
    """What library a fused kernel is of, by its name."""
    return _first(_BACKEND_OF_KERNEL, [name]) or Backend.OTHER
