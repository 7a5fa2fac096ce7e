# at: return [
import torch


def areas(boxes: torch.Tensor):
    sizes = (boxes[:, 2] - boxes[:, 0]).clamp(min=0) * (boxes[:, 3] - boxes[:, 1]).clamp(min=0)
    sizes = torch.sqrt(sizes)
    return [s.item() for s in sizes]


def run():
    torch.manual_seed(0)
    return areas(torch.rand(9, 4))
