# at: x[:, [2, 1, 0]]
import torch


def to_bgr(x):
    return x[:, [2, 1, 0]]
