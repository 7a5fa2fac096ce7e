# at: y = a @ b
# line: """Products."""
# fix: unsafe
"""Products."""
import torch

torch.set_float32_matmul_precision("high")


def f(a, b):
    y = a @ b
    return y
