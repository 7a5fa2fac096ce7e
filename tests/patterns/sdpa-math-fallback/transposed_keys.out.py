# at: return torch.nn.functional.scaled_dot_product_attention(q, self.k(x).unflatten(1, (2, 4)).mT, v)
# evidence: reason the last dimension of keys is not dense
import torch


class Attention(torch.nn.Module):
    """Keys come from a 1x1 convolution: tokens last."""

    def __init__(self):
        super().__init__()
        self.k = torch.nn.Conv1d(8, 8, 1)

    def forward(self, x, q, v):
        return torch.nn.functional.scaled_dot_product_attention(q, self.k(x).unflatten(1, (2, 4)).mT.contiguous(), v)


def run():
    torch.manual_seed(0)
    return Attention()(torch.randn(3, 8, 5), torch.randn(3, 2, 5, 4), torch.randn(3, 2, 5, 4))
