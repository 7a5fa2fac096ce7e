# at: x = x.to(device)
# line: dataset = datasets.ImageFolder
import torch
from torchvision import datasets, transforms


def train(model, device):
    dataset = datasets.ImageFolder("train", transform=transforms.Compose([transforms.Resize(256), transforms.ToTensor()]))
    loader = torch.utils.data.DataLoader(dataset, batch_size=32)
    for x, y in loader:
        x = x.to(device)
        model(x)
