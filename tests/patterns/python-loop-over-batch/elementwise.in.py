# at: return torch.
# fix: safe
import torch


def normalised(x):
    return torch.stack([torch.sigmoid(x[i]) * 2 - 1 for i in range(x.shape[0])])


def run():
    torch.manual_seed(0)
    x = torch.randn(5, 3, 4, requires_grad=True)
    y = normalised(x)
    y.square().sum().backward()
    return [y, x.grad]
