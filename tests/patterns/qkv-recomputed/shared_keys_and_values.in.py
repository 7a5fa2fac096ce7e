# at: value = self.to_kv(context)
# line: key = self.to_kv(context)
import torch
from torch import nn


class Pool(nn.Module):
    """Keys are values here."""

    def __init__(self, dim=8):
        super().__init__()
        self.query = nn.Parameter(torch.zeros(1, 4, dim))
        self.to_kv = nn.Linear(dim, dim)

    def forward(self, context):
        query = self.query.expand(context.shape[0], -1, -1)
        key = self.to_kv(context)
        scores = torch.bmm(query, key.transpose(1, 2))
        value = self.to_kv(context)
        return torch.bmm(scores.softmax(dim=-1), value)


def run():
    torch.manual_seed(0)
    pool = Pool()
    x = torch.randn(2, 5, 8, requires_grad=True)
    y = pool(x)
    y.sum().backward()
    return y, x.grad
