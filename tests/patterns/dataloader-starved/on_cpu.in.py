# at: for x in make_loader(data):
# line: return DataLoader(
# device: cpu
from torch.utils.data import DataLoader


def make_loader(data):
    return DataLoader(data, 16, True, None, None, 1)


def train(data):
    for x in make_loader(data):
        print(x)


def run():
    return []
