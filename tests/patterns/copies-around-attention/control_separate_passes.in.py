# at: k = k.transpose(-2, -1).contiguous()
# confirmed: no
import torch


def attend(q, k, v):
    k = k.transpose(-2, -1).contiguous()
    return torch.softmax(q @ k, dim=-1) @ v
