# at: key = self.k_proj(hidden_states)
# line: query = self.q_proj(hidden_states) * self.scaling
# fix: unsafe
import torch.nn as nn
import torch.nn.functional as F
import torch


class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.heads = config.heads
        self.scaling = 0.25
        self.qkv_proj = nn.Linear(in_features=config.width, out_features=(config.width // 2 * 2) * 3, bias=config.qkv_bias)
        self.o_proj = nn.Linear(config.width, config.width)

    def _load_from_state_dict(self, state_dict, prefix, *args, **kwargs):
        """Joins q_proj, k_proj, v_proj of checkpoints from before they were one layer."""
        for kind in ("weight", "bias"):
            parts = [f"{prefix}{name}.{kind}" for name in ("q_proj", "k_proj", "v_proj")]
            if all(part in state_dict for part in parts):
                state_dict[f"{prefix}qkv_proj.{kind}"] = torch.cat([state_dict.pop(part) for part in parts])
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)

    def forward(self, hidden_states):
        batch, length, _ = hidden_states.shape
        query, key, value = self.qkv_proj(hidden_states).chunk(3, dim=-1)
        query = query * self.scaling
        split = lambda t: t.reshape(batch, length, self.heads, -1).transpose(1, 2)
        out = F.scaled_dot_product_attention(split(query), split(key), split(value), scale=1.0)
        return self.o_proj(out.transpose(1, 2).flatten(2))
