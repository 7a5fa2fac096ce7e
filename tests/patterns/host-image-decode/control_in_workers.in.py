# at: for image, label in loader:
from PIL import Image
from torch.utils.data import DataLoader, Dataset


def rgb(path):
    image = Image.open(path).convert("RGB")
    return image


class Birds(Dataset):
    def __init__(self, items, transform):
        self.items, self.transform = items, transform

    def __getitem__(self, i):
        path, label = self.items[i]
        return self.transform(rgb(path)), label


def train(items, transform):
    loader = DataLoader(Birds(items, transform), batch_size=32, num_workers=4)
    for image, label in loader:
        print(image.shape)
