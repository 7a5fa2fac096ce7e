# at: q, k, v = self.wq(x), self.wk(x), self.wv(x)
# fix: unsafe
import torch
from torch.nn import Linear, Module
from torch.nn.functional import scaled_dot_product_attention


class Block(Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.wq = Linear(dim, dim, bias=False)
        self.wk = Linear(dim, dim, bias=False)
        self.wv = Linear(dim, dim, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.wq(x), self.wk(x), self.wv(x)
        return scaled_dot_product_attention(q, k, v)
