import torch
from torch.utils.data import DataLoader, Dataset

from callbacks import NanGuard, WeightNorm
from task import ClassificationTask
from trainer import Trainer


class Blobs(Dataset):
    def __init__(self, n=96, size=40):
        g = torch.Generator().manual_seed(1)
        self.images = torch.rand(n, 3, size, size, generator=g)
        self.labels = torch.randint(0, 7, (n,), generator=g)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        image = self.images[i]
        if torch.rand(()) < 0.5:
            image = image.flip(-1)
        top, left = torch.randint(0, 8, (2,)).tolist()
        image = image[:, top:top + 32, left:left + 32]
        image = (image - 0.5) / 0.25
        return image, self.labels[i]


def main():
    trainer = Trainer(max_steps=5, callbacks=[NanGuard(), WeightNorm()], clip=1.0)
    trainer.fit(ClassificationTask(), DataLoader(Blobs(), batch_size=16, shuffle=True))


if __name__ == "__main__":
    main()
