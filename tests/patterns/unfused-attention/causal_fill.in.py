# at: att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
import math

import torch
import torch.nn as nn
from torch.nn import functional as F


class CausalSelfAttention(nn.Module):

	def __init__(self, n_embd=16, n_head=2, block_size=8):
		super().__init__()
		self.c_attn = nn.Linear(n_embd, 3 * n_embd)
		self.attn_dropout = nn.Dropout(0.1)
		self.register_buffer("bias", torch.tril(torch.ones(block_size, block_size)).view(1, 1, block_size, block_size))
		self.n_head = n_head

	def forward(self, x):
		B, T, C = x.size()
		q, k, v = self.c_attn(x).split(C, dim=2)
		k = k.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
		q = q.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
		v = v.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)

		# causal self-attention; Self-attend: (B, nh, T, hs) x (B, nh, hs, T) -> (B, nh, T, T)
		att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
		att = att.masked_fill(self.bias[:,:,:T,:T] == 0, float('-inf'))
		att = F.softmax(att, dim=-1)
		att = self.attn_dropout(att)
		y = att @ v # (B, nh, T, T) x (B, nh, T, hs) -> (B, nh, T, hs)
		return y.transpose(1, 2).contiguous().view(B, T, C)


def run():
    torch.manual_seed(0)
    return CausalSelfAttention().eval()(torch.randn(2, 6, 16))
