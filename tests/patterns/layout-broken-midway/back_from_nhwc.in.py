# at: x = x.reshape(b, h, w, -1).permute(0, 3, 1, 2).contiguous()
# fix: unsafe
import torch


def images(x, h, w):
    b = x.shape[0]
    x = x.reshape(b, h, w, -1).permute(0, 3, 1, 2).contiguous()
    return x
