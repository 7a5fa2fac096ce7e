"""A script over a package: relative, star and module imports."""

import torch
from nets import Pyramid

example = torch.randn(1, 3, 64, 64)


def build(size):
    return Pyramid(size=size).to("cpu").half().float()


if __name__ == "__main__":
    model = build("small")
    print(model(example)[0].shape)
else:
    model = build("small")
