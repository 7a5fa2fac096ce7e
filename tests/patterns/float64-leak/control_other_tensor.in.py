# at: x * mean
# confirmed: no
import torch

mean = torch.tensor([0.485, 0.456, 0.406])


def normalize(x):
    x = x * mean
    return x
