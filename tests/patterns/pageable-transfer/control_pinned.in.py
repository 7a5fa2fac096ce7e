# at: x = x.to("cuda")
# confirmed: no
from torch.utils.data import DataLoader


def train(data):
    for x in DataLoader(data, pin_memory=True):
        x = x.to("cuda")
        yield x
