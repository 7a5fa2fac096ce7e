# at: for images in loader:
# line: return cv2.flip(
import numpy as np
from torch.utils.data import DataLoader, Dataset

try:
    import cv2
    cv2.setNumThreads(0)
except ImportError:
    from types import SimpleNamespace

    cv2 = SimpleNamespace(resize=lambda image, size: image[: size[1], : size[0]], flip=lambda image, code: image[:, ::-1])


def prepared(image):
    return cv2.flip(cv2.resize(image, (8, 6)), 1)


class Frames(Dataset):
    def __init__(self, frames, transform):
        self.frames = frames
        self.transform = transform

    def __len__(self):
        return len(self.frames)

    def __getitem__(self, i):
        return self.transform(self.frames[i]).copy()


def train(data, workers=4):
    loader = DataLoader(data, batch_size=2, num_workers=workers)
    for images in loader:
        print(images.shape)


def run():
    frames = Frames(np.random.default_rng(0).integers(0, 255, (4, 12, 16, 3), dtype=np.uint8), prepared)
    return [frames[i] for i in range(4)]


def main(paths):
    train(Frames(paths, prepared))
