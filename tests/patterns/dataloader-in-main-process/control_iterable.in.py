# at: for x in DataLoader(Stream()):
from torch.utils.data import DataLoader, IterableDataset


class Stream(IterableDataset):
    def __iter__(self):
        yield from range(10)


def train(model):
    for x in DataLoader(Stream()):
        model(x)
