# at: for x in loader:
# confirmed: no
from torch.utils.data import DataLoader


def train(data):
    loader = DataLoader(data, num_workers=0)
    for x in loader:
        print(x)
