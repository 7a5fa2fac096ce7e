# at: return self.transform(image)
# line: ToTensor(),  # first
import numpy as np
import torch

# Stand-ins for torchvision.transforms, of the same names and order of work.


class Compose:
    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, image):
        for transform in self.transforms:
            image = transform(image)
        return image


class ToTensor:
    def __call__(self, image):
        return torch.from_numpy(np.ascontiguousarray(image)).permute(2, 0, 1).float().div(255)


class CenterCrop:
    def __init__(self, size):
        self.size = size

    def __call__(self, image):
        height, width = image.shape[-2:] if isinstance(image, torch.Tensor) else image.shape[:2]
        y, x = (height - self.size) // 2, (width - self.size) // 2
        rows, columns = slice(y, y + self.size), slice(x, x + self.size)
        return image[:, rows, columns] if isinstance(image, torch.Tensor) else image[rows, columns]


class RandomHorizontalFlip:
    def __call__(self, image):
        if torch.rand(1) < 0.5:
            return image.flip(-1) if isinstance(image, torch.Tensor) else image[:, ::-1]
        return image


class Birds:
    def __init__(self, transform):
        self.transform = transform

    def load(self, image):
        return self.transform(image)


def build():
    return Birds(
        transform=Compose(
            [
                CenterCrop(24),  # first
                RandomHorizontalFlip(),
                ToTensor(),
                lambda image: (image - 0.5) / 0.2,
            ]
        )
    )


def run():
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    birds = build()
    return [birds.load(rng.integers(0, 255, (40, 50, 3), dtype=np.uint8)) for _ in range(6)]
