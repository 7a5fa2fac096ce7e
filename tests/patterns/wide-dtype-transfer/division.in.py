# at: images = images.to(self.device, non_blocking=True)
import torch


class Engine:
    device = torch.device("cpu")

    def forward(self, images):
        images = images.permute(0, 3, 1, 2) / 255.0
        images = images - 0.5
        images = images.to(self.device, non_blocking=True)
        return images.mean()


def run():
    return Engine().forward(torch.arange(96, dtype=torch.uint8).view(2, 4, 4, 3))
