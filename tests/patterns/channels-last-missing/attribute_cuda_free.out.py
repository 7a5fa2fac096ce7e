# at: return self.net(batch)
# line: self.net = Net().eval()
import torch
from torch import nn


class Net(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 2, 1))


class Predictor:
    def __init__(self):
        torch.manual_seed(1)
        self.net = Net().eval().to(memory_format=torch.channels_last)  # fp32

    @torch.inference_mode()
    def __call__(self, frames):
        batch = torch.stack(frames).sub(0.5)
        return self.net(batch.contiguous(memory_format=torch.channels_last))


def run():
    torch.manual_seed(0)
    return Predictor()([torch.randn(3, 6, 6), torch.randn(3, 6, 6)])
