# at: return self.head(self.stem(x))
# line: nn.Conv2d(3, width, kernel_size=3, bias=True),  # full size
import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, width, kernel_size=3, bias=True),  # full size
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
            nn.Conv2d(
                width,
                width,
                kernel_size=3,
                stride=2,
            ),
            nn.BatchNorm2d(width),
        )
        self.head = nn.Conv2d(width, 2, 1)

    def forward(self, x):
        return self.head(self.stem(x))


def run():
    net = Net()
    with torch.no_grad():
        for p in net.parameters():
            p.copy_(torch.linspace(-1, 1, p.numel()).cos().view_as(p) + 0.1)
    images = torch.linspace(0, 20, 2 * 3 * 9 * 9).sin().view(2, 3, 9, 9)
    y = net(images)
    y.square().sum().backward()
    return [y.detach(), *(m.weight.grad for m in net.modules() if isinstance(m, nn.Conv2d))]
