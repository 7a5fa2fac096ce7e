# at: for x in loader:
# line: loader = DataLoader(
# fix: unsafe
from torch.utils.data import DataLoader, Dataset


class Progressive(Dataset):
    def __init__(self, images):
        self.images = images
        self.epoch = 0

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        return self.images[i] * (self.epoch + 1)


def train(images):
    data = Progressive(images)
    loader = DataLoader(data, num_workers=2, persistent_workers=True)
    for epoch in range(3):
        data.epoch = epoch
        for x in loader:
            print(x)
