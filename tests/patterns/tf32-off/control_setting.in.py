# at: y = a @ b
# confirmed: no
import torch


def f(a, b, cfg):
    torch.set_float32_matmul_precision(cfg.precision)
    y = a @ b
    return y
