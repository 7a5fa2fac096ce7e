# at: return [float(x) for x in torch.linspace
import torch


def drop_rates(rate: float, depths: list[int]) -> list[float]:
    return [float(x) for x in torch.linspace(0, rate, sum(depths))]
