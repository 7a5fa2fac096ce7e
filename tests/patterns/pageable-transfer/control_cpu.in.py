# at: x = x.to(device)
# device: cpu
# confirmed: no
from torch.utils.data import DataLoader


def train(data, device):
    for x in DataLoader(data):
        x = x.to(device)
        yield x
