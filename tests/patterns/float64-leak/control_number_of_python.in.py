# at: return torch.tensor(temperature)
# confirmed: no
import torch


def temperature_of(temperature):
    return torch.tensor(temperature)
