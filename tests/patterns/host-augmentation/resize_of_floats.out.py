# at: for images, labels in loader:
# line: T.ToDtype(torch.float32, scale=True), T.Resize(256)
# fix: unsafe
import torch
from torch.utils.data import DataLoader
from torchvision.datasets import ImageFolder
from torchvision.transforms import v2 as T

train = ImageFolder(
    "data", transform=T.Compose([T.ToImage(), T.Resize(256), T.RandomCrop(224), T.ToDtype(torch.float32, scale=True)])
)
loader = DataLoader(train, batch_size=32)
for images, labels in loader:
    print(images.shape)
