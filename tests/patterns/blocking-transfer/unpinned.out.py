# at: images = (images / 255).cuda()
# fix: unsafe
from torch.utils.data import DataLoader


def train(data):
    for images in DataLoader(data):
        images = (images / 255).cuda(non_blocking=True)
        yield images
