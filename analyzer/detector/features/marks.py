"""What the name of an operator, an annotation or a Python frame says, as flags: every name is looked at once."""

from __future__ import annotations

import re
from enum import IntFlag
from functools import lru_cache


class Mark(IntFlag):
    """What a host event is."""

    FUSED_ATTENTION = 1
    """The call that chooses a backend."""
    FLASH = 2
    EFFICIENT = 4
    IN_PLACE_ACTIVATION = 8
    """One whose result autograd cannot go back from, so that its input is cloned first."""
    IN_PLACE_STEP = 16
    """In-place arithmetic, as optimizers and averages do."""
    FORWARD_ONLY = 32
    """What Python calls in a forward pass and no backward pass does of itself."""
    ADDITION = 64
    COMPILED_REGION = 128
    COMPILING = 256
    RESUMED = 512
    """A function entered again after a break in its graph."""
    BUCKET = 1024
    """Copies of gradients to and from buckets."""
    UNUSED_SEARCH = 2048
    WRAPPER = 4096
    REPLICA = 8192
    """Replication within one process."""
    HOST_BACKEND = 16384
    TO_PYTHON = 32768
    """Calls that turn tensors into Python values."""


_PATTERNS: tuple[tuple[Mark, re.Pattern[str]], ...] = tuple(
    (mark, re.compile(pattern))
    for mark, pattern in (
        (Mark.FUSED_ATTENTION, r"^aten::scaled_dot_product_attention$"),
        (Mark.FLASH, r"^aten::_scaled_dot_product_(fused_|cudnn_|flash_)\w*attention(_for_cpu)?$"),
        (Mark.EFFICIENT, r"^aten::_scaled_dot_product_efficient_attention$"),
        (Mark.IN_PLACE_ACTIVATION, r"^aten::(silu|hardswish|mish|gelu|elu|leaky_relu|sigmoid|tanh|hardsigmoid)_$"),
        (Mark.IN_PLACE_STEP, r"^aten::(add|mul|sub|div|addcmul|addcdiv|lerp|sqrt|copy|clamp|pow)_$"),
        (
            Mark.FORWARD_ONLY,
            r"^aten::(conv[123]d|linear|layer_norm|batch_norm|group_norm|relu_?|gelu|silu_?|dropout|softmax|max_pool2d"
            r"|scaled_dot_product_attention|embedding)$",
        ),
        (Mark.ADDITION, r"^aten::(add_?|baddbmm)$"),
        (Mark.HOST_BACKEND, r"^(gloo|mpi|ucc):"),
    )
)

_WORDS: tuple[tuple[Mark, tuple[str, ...]], ...] = (
    (Mark.COMPILED_REGION, ("Torch-Compiled Region",)),
    (
        Mark.COMPILING,
        ("entire_frame_compile", "entire_backward_compile", "compile_inner", "convert_frame.py", "compile_fx.py"),
    ),
    (Mark.RESUMED, ("torch_dynamo_resume_in_",)),
    (Mark.BUCKET, ("copy_bucket", "reducer::mul_out", "copy_grad_to_bucket")),
    (Mark.UNUSED_SEARCH, ("prepare_for_backward", "find_unused", "search_unused", "_find_tensors")),
    (Mark.WRAPPER, ("DistributedDataParallel.forward", "_pre_forward", "_post_forward")),
    (Mark.REPLICA, ("parallel/data_parallel", "parallel/replicate", "broadcast_coalesced", "ReduceAddCoalesced")),
    (Mark.TO_PYTHON, tuple(f"built-in method {name} " for name in ("item", "tolist", "cpu", "numpy", "__bool__"))),
)


@lru_cache(maxsize=65536)
def marks_of(name: str) -> int:
    """The flags of `Mark` that a name has."""
    found = 0
    for mark, words in _WORDS:
        if any(word in name for word in words):
            found |= mark
    if name.startswith(("aten::", "gloo:", "mpi:", "ucc:")):
        for mark, pattern in _PATTERNS:
            if pattern.search(name):
                found |= mark
    return int(found)
