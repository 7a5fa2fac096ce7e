# at: y = a @ b
# line: torch.backends.cuda.matmul.allow_tf32 = False
# fix: unsafe
import torch

torch.backends.cuda.matmul.allow_tf32 = True


def f(a, b):
    y = a @ b
    return y
