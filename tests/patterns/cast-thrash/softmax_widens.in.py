# at: attn = F.softmax(
import torch
import torch.nn.functional as F


def attend(q, k, v):
    scores = q @ k.transpose(-2, -1)
    attn = F.softmax(scores.float(), dim=-1).to(q.dtype)
    return attn @ v


def run():
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 8, 16, dtype=torch.bfloat16, requires_grad=True) for _ in range(3))
    out = attend(q, k, v)
    out.float().sum().backward()
    return out.detach(), q.grad, k.grad, v.grad
