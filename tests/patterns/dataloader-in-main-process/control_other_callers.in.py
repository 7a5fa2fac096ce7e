# at: return DataLoader(
from torch.utils.data import DataLoader


def build(data, workers):
    return DataLoader(data, num_workers=workers)


def train(data):
    return build(data, workers=8)


def calibrate(data):
    return build(data, workers=0)
