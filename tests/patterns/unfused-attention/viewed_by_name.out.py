# at: weights = (q @ k.transpose(-2, -1) * d**-0.5).softmax(-1)
import torch
import torch.nn.functional as F


def attend(q, k, v):
    b, heads, n, d = q.shape
    out = F.scaled_dot_product_attention(q, k, v, scale=d**-0.5).contiguous()
    return out.view(b * heads, n, d)


def run():
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 4, 16, 8, requires_grad=True) for _ in range(3))
    y = attend(q, k, v)
    y.square().sum().backward()
    return y, q.grad, k.grad, v.grad
