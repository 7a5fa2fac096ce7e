# at: for x in loader:
# confirmed: no
from torch.utils.data import DataLoader

WORKERS = 8


def train(dataset, model):
    loader = DataLoader(dataset, batch_size=32, num_workers=WORKERS, pin_memory=True)
    for x in loader:
        model(x)
