# at: for x in loader:
from torch.utils.data import DataLoader


def train(data, epochs, **options):
    loader = DataLoader(data, **options)
    for _ in range(epochs):
        for x in loader:
            print(x)
