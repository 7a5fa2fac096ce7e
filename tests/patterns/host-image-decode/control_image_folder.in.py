# at: for image, label in loader:
from torch.utils.data import DataLoader
from torchvision.datasets import ImageFolder


def train(root, transform):
    loader = DataLoader(ImageFolder(root, transform), batch_size=32, num_workers=4)
    for image, label in loader:
        print(image.shape)
