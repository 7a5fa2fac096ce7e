# at: key = self.k_proj(hidden_states)
# line: query = self.q_proj(hidden_states) * self.scaling
# fix: unsafe
import torch.nn as nn
import torch.nn.functional as F


class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.heads = config.heads
        self.scaling = 0.25
        self.q_proj = nn.Linear(in_features=config.width, out_features=config.width // 2 * 2, bias=config.qkv_bias)
        self.k_proj = nn.Linear(in_features=config.width, out_features=config.width // 2 * 2, bias=config.qkv_bias)
        self.v_proj = nn.Linear(in_features=config.width, out_features=config.width // 2 * 2, bias=config.qkv_bias)
        self.o_proj = nn.Linear(config.width, config.width)

    def forward(self, hidden_states):
        batch, length, _ = hidden_states.shape
        query = self.q_proj(hidden_states) * self.scaling
        key = self.k_proj(hidden_states)  # (batch, length, width)
        value = self.v_proj(hidden_states)
        split = lambda t: t.reshape(batch, length, self.heads, -1).transpose(1, 2)
        out = F.scaled_dot_product_attention(split(query), split(key), split(value), scale=1.0)
        return self.o_proj(out.transpose(1, 2).flatten(2))
