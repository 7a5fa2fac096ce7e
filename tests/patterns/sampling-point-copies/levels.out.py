# at: maps = value
# fix: safe
import torch
import torch.nn.functional as F


def sample(values, grids):
    out = []
    for value, grid in zip(values, grids):
        maps = value.permute(0, 3, 1, 2)
        points = grid.transpose(1, 2)  # (n, points, queries, 2)
        out.append(F.grid_sample(maps, points, mode="bilinear", align_corners=False))
    return torch.stack(out, -1)


def run():
    torch.manual_seed(0)
    values = [torch.randn(2, 8, 8, 3, requires_grad=True), torch.randn(2, 4, 4, 3, requires_grad=True)]
    grids = [torch.rand(2, 5, 7, 2) * 2 - 1 for _ in range(2)]
    out = sample(values, grids)
    out.square().sum().backward()
    return [out, *(value.grad for value in values)]
