"""Leaf photographs. They are drawn here, so that the example needs no download."""

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

CLASSES = ["oak", "birch", "maple", "willow", "ash", "beech", "lime", "alder"]
MEAN = np.array([0.44, 0.51, 0.35], dtype=np.float32)
STD = np.array([0.24, 0.23, 0.22], dtype=np.float32)


def draw_leaf(kind, size, rng):
    """One uint8 HWC picture: a lobed outline, its number of lobes given by the class."""
    y, x = np.mgrid[-1 : 1 : size * 1j, -1 : 1 : size * 1j]
    angle = np.arctan2(y, x) + rng.uniform(0, 2 * np.pi)
    radius = 0.55 + 0.18 * np.cos((kind + 2) * angle) + 0.03 * rng.standard_normal()
    inside = np.hypot(x, y) < radius
    picture = rng.uniform(0.55, 0.95, 3) * np.ones((size, size, 3))
    picture[inside] = [0.2 + 0.05 * kind, rng.uniform(0.4, 0.8), 0.15]
    picture += 0.05 * rng.standard_normal(picture.shape)
    return (255 * picture.clip(0, 1)).astype(np.uint8)


class Leaves(Dataset):
    def __init__(self, count, size=96, train=True, seed=0):
        rng = np.random.default_rng(seed)
        self.size = size
        self.train = train
        self.labels = rng.integers(0, len(CLASSES), count)
        self.images = [draw_leaf(kind, size + 16, rng) for kind in self.labels]

    def __len__(self):
        return len(self.images)

    def augment(self, image):
        top, left = np.random.randint(0, 16, 2)
        image = image[top : top + self.size, left : left + self.size]
        if np.random.rand() < 0.5:
            image = image[:, ::-1]
        image = self.rotate(image, np.random.uniform(-0.5, 0.5))
        grey = image.mean(axis=2, keepdims=True)
        image = grey + (image - grey) * np.random.uniform(0.6, 1.4)
        image = np.clip(image * np.random.uniform(0.7, 1.3), 0, 1) ** np.random.uniform(0.8, 1.25)
        return image + np.random.normal(0, 0.02, image.shape).astype(np.float32)

    def rotate(self, image, angle):
        """Bilinear rotation about the centre."""
        height, width = image.shape[:2]
        y, x = np.mgrid[:height, :width].astype(np.float32)
        cy, cx = (height - 1) / 2, (width - 1) / 2
        cos, sin = np.cos(angle), np.sin(angle)
        sy = np.clip(cos * (y - cy) - sin * (x - cx) + cy, 0, height - 1.001)
        sx = np.clip(sin * (y - cy) + cos * (x - cx) + cx, 0, width - 1.001)
        y0, x0 = sy.astype(int), sx.astype(int)
        fy, fx = (sy - y0)[..., None], (sx - x0)[..., None]
        top = image[y0, x0] * (1 - fx) + image[y0, x0 + 1] * fx
        bottom = image[y0 + 1, x0] * (1 - fx) + image[y0 + 1, x0 + 1] * fx
        return top * (1 - fy) + bottom * fy

    def __getitem__(self, index):
        image = self.images[index].astype(np.float32) / 255
        if self.train:
            image = self.augment(image)
        else:
            image = image[8 : 8 + self.size, 8 : 8 + self.size]
        image = (image - MEAN) / STD
        return torch.from_numpy(image.transpose(2, 0, 1).astype(np.float32)), int(self.labels[index])


def make_loader(count, batch_size, train=True):
    data = Leaves(count, train=train, seed=0 if train else 1)
    return DataLoader(data, batch_size=batch_size, shuffle=train, drop_last=train)
