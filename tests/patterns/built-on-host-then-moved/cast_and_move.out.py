# at: scale = torch.tensor([0.1, 0.2]).to(device, torch.float64)
import torch


def boxes(x, device):
    scale = torch.tensor([0.1, 0.2], device=device, dtype=torch.float64)
    return x * scale


def run():
    return boxes(torch.ones(2), torch.device("cpu"))
