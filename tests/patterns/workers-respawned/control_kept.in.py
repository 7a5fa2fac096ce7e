# at: for x in loader:
# confirmed: no
from torch.utils.data import DataLoader


def train(data, epochs):
    loader = DataLoader(data, num_workers=2, persistent_workers=True)
    for _ in range(epochs):
        for x in loader:
            print(x)
