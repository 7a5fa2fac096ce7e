# at: attn = (attn * logit_scale).softmax(-1)
# line: attn
import torch
from torch import nn
from torch.nn import functional as F


class CosineAttention(nn.Module):
    def __init__(self, heads):
        super().__init__()
        self.logit_scale = nn.Parameter(torch.ones(heads, 1, 1))

    def forward(self, q, k, v):
        attn = F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).transpose(-2, -1)
        logit_scale = torch.clamp(self.logit_scale, max=4.6).exp()
        attn = (attn * logit_scale).softmax(-1)
        return attn @ v
