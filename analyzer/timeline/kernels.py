"""The class of every device event: from its name, and from the operator that launched it where the name is silent."""

from __future__ import annotations

import re

import numpy as np

from ..trace.model import DEVICE_CATEGORIES, NONE, Int8Array, Trace
from .kernel_names import KernelName, Precision, decode, matrix_class, on_matrix_units
from .model import CallTree, KernelClass, Launches

_CONVOLUTION_OP = re.compile(r"conv(?!ert)", re.IGNORECASE)

_OP_RULES: tuple[tuple[re.Pattern[str], KernelClass], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), kernel_class)
    for pattern, kernel_class in (
        (r"attention|flash|xformers", KernelClass.ATTENTION),
        (r"(batch|layer|group|rms|instance)_?norm", KernelClass.NORM),
        (r"softmax", KernelClass.SOFTMAX),
        (r"pool", KernelClass.POOL),
        (r"^(aten::)?(copy_|_to_copy|contiguous|clone|cat)$", KernelClass.COPY),
        (
            r"aten::(sum|mean|amax|amin|max|min|argmax|argmin|norm|linalg_vector_norm|var|std|any|all|prod)$",
            KernelClass.REDUCE,
        ),
        (r"index|gather|scatter|embedding|nonzero|sort|topk|masked_select", KernelClass.INDEX),
        (r"all_?reduce|all_?gather|reduce_?scatter|alltoall|broadcast_$|c10d::", KernelClass.COMMUNICATION),
    )
)
"""What an operator's own kernels compute, for kernels whose name says nothing."""

_HALF_TYPES = frozenset({"c10::Half", "c10::BFloat16"})


def classify_kernels(trace: Trace, launches: Launches, tree: CallTree) -> Int8Array:
    """Class of each event, shape (n,): `KernelClass` of device rows, OTHER for host rows.

    Each distinct pair of kernel name and launching operator's name is decoded once. A GEMM kernel that a convolution
    launched (Winograd, im2col, 1x1) counts as convolution.
    """
    classes = np.zeros(len(trace), dtype=np.int8)
    rows = trace.rows(*DEVICE_CATEGORIES)
    if len(rows) == 0:
        return classes
    op = launches.op[rows]
    op_name = np.where(op >= 0, trace.name[op], NONE)
    pairs = trace.name[rows].astype(np.int64) * (len(trace.names) + 1) + op_name + 1
    _, first, inverse = np.unique(pairs, return_index=True, return_inverse=True)
    table = np.empty(len(first), dtype=np.int8)
    for i, k in enumerate(first):
        table[i] = classify_name(trace.name_of(int(rows[k])), _op_facts(trace, int(op[k])))
    classes[rows] = table[inverse.ravel()]
    return classes


def classify_name(kernel: str, op: tuple[str, str] = ("", "")) -> KernelClass:
    """Class of a kernel name, given the name and first input type of the operator that launched it."""
    decoded = decode(kernel)
    op_name, op_type = op
    match decoded.kernel_class:
        case KernelClass.GEMM_TENSOR_CORE | KernelClass.GEMM_SIMT if _CONVOLUTION_OP.search(op_name):
            return matrix_class(True, decoded.kernel_class is KernelClass.GEMM_TENSOR_CORE)
        case KernelClass.CONV_SIMT | KernelClass.GEMM_SIMT if decoded.precision is Precision.UNKNOWN:
            is_convolution = decoded.kernel_class is KernelClass.CONV_SIMT
            return matrix_class(is_convolution, on_matrix_units(decoded.precision, op_type in _HALF_TYPES))
        case KernelClass.OTHER:
            return next((c for pattern, c in _OP_RULES if pattern.search(op_name)), KernelClass.OTHER)
        case _:
            return decoded.kernel_class


def kernel_name(trace: Trace, row: int) -> KernelName:
    """Class, precision and alignment as the name of device row `row` says them."""
    return decode(trace.name_of(row))


def _op_facts(trace: Trace, op: int) -> tuple[str, str]:
    return (trace.name_of(op), trace.inputs_of(op).dtype(0)) if op >= 0 else ("", "")
