# at: for x, y in loader:
# confirmed: no
from torch.utils.data import DataLoader


def train(data):
    loader = DataLoader(data, batch_size=8, num_workers=4)
    for x, y in loader:
        print(x.shape)
