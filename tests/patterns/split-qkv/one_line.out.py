# at: q, k, v = self.wq(x), self.wk(x), self.wv(x)
# fix: unsafe
import torch
from torch.nn import Linear, Module
from torch.nn.functional import scaled_dot_product_attention


class Block(Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.wqkv = Linear(dim, dim * 3, bias=False)

    def _load_from_state_dict(self, state_dict, prefix, *args, **kwargs):
        """Joins wq, wk, wv of checkpoints from before they were one layer."""
        for kind in ("weight", "bias"):
            parts = [f"{prefix}{name}.{kind}" for name in ("wq", "wk", "wv")]
            if all(part in state_dict for part in parts):
                state_dict[f"{prefix}wqkv.{kind}"] = torch.cat([state_dict.pop(part) for part in parts])
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.wqkv(x).chunk(3, dim=-1)
        return scaled_dot_product_attention(q, k, v)
