# slug: channels-last-missing
# verdict: fault
# at: net = UNet().eval().cuda()
# at: y = net(tile)
# fix: safe
# note: 12 % of the device's time goes into turning feature maps from NCHW to NHWC and back
import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.conv1 = nn.Conv2d(a, b, 3, padding=1)
        self.norm1 = nn.BatchNorm2d(b)
        self.conv2 = nn.Conv2d(b, b, 3, padding=1)
        self.norm2 = nn.BatchNorm2d(b)

    def forward(self, x):
        x = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(x)))


class UNet(nn.Module):
    def __init__(self, width=32, classes=5):
        super().__init__()
        self.down = Block(3, width)
        self.middle = Block(width, 2 * width)
        self.up = Block(3 * width, width)
        self.head = nn.Conv2d(width, classes, 1)

    def forward(self, x):
        skip = self.down(x)
        deep = F.interpolate(self.middle(F.max_pool2d(skip, 2)), scale_factor=2.0)
        return self.head(self.up(torch.cat([skip, deep], 1)))


def segment(tiles):
    net = UNet().eval().cuda()
    masks = []
    with torch.inference_mode(), torch.autocast("cuda", torch.float16):
        for tile in tiles:
            y = net(tile)
            masks.append(y.argmax(1))
    return masks
