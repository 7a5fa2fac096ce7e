# at: scores = net(images)
# line: net.eval()
# device: cpu
import torch
from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval


class ConvBlock(nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.conv = nn.Conv2d(a, b, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(b)

    def forward(self, x):
        x = self.conv(x)
        x = self.bn(x)
        return torch.relu(x)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2), nn.BatchNorm2d(8), nn.ReLU())
        self.block1, self.block2 = ConvBlock(8, 12), ConvBlock(12, 6)

    def forward(self, x):
        return self.block2(self.block1(self.stem(x))).mean((2, 3))


def classify(images):
    net = Net()
    net.load_state_dict(weights())
    net.eval()  # no dropout
    for block in list(net.modules()):  # in eval mode a norm is a part of the convolution before it
        if isinstance(block, ConvBlock):
            block.conv, block.bn = fuse_conv_bn_eval(block.conv, block.bn), nn.Identity()
        if type(block) is nn.Sequential:
            for i in range(len(block) - 1):
                if isinstance(block[i], nn.Conv2d) and isinstance(block[i + 1], nn.BatchNorm2d):
                    block[i], block[i + 1] = fuse_conv_bn_eval(block[i], block[i + 1]), nn.Identity()
    with torch.no_grad():
        scores = net(images)
    return scores


def weights():
    torch.manual_seed(0)
    teacher = Net()
    teacher(torch.rand(4, 3, 16, 16) * 3 + 1)
    return teacher.state_dict()


def run():
    torch.manual_seed(1)
    return classify(torch.rand(2, 3, 16, 16))
