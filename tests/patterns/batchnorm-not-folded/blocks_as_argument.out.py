# at: return self.backbone(images.to(self.device))
# line: self.backbone = self.backbone.eval()
# device: cpu
import torch
from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval


def conv3x3(a, b, stride=1):
    return nn.Conv2d(a, b, 3, stride, 1, bias=False)


class BasicBlock(nn.Module):
    expansion = 1

    def __init__(self, a, b, stride=1):
        super().__init__()
        self.conv1 = conv3x3(a, b, stride)
        self.bn1 = nn.BatchNorm2d(b)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = conv3x3(b, b)
        self.bn2 = nn.BatchNorm2d(b)
        self.downsample = None
        if stride != 1 or a != b:
            self.downsample = nn.Sequential(nn.Conv2d(a, b, 1, stride, bias=False), nn.BatchNorm2d(b))

    def forward(self, x):
        identity = x
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        if self.downsample is not None:
            identity = self.downsample(x)
        out += identity
        return self.relu(out)


class ResNet(nn.Module):
    def __init__(self, block, layers, width=16):
        super().__init__()
        self.inplanes = width
        self.stem = nn.Conv2d(3, width, 1)
        self.layer1 = self._make_layer(block, width, layers[0])
        self.layer2 = self._make_layer(block, 2 * width, layers[1], 2)

    def _make_layer(self, block, planes, blocks, stride=1):
        layers = [block(self.inplanes, planes, stride)]
        self.inplanes = planes
        layers += [block(planes, planes) for _ in range(1, blocks)]
        return nn.Sequential(*layers)

    def forward(self, x):
        return self.layer2(self.layer1(self.stem(x))).mean((2, 3))


def make_resnet(width):
    return ResNet(BasicBlock, [1, 1], 8)


class Extractor:
    def __init__(self, device="cpu"):
        self.device = device
        self.backbone = make_resnet(64).to(self.device)
        self.backbone = self.backbone.eval()
        for block in list(self.backbone.modules()):  # in eval mode a norm is a part of the convolution before it
            if isinstance(block, BasicBlock):
                block.conv1, block.bn1 = fuse_conv_bn_eval(block.conv1, block.bn1), nn.Identity()
                block.conv2, block.bn2 = fuse_conv_bn_eval(block.conv2, block.bn2), nn.Identity()
            if type(block) is nn.Sequential:
                for i in range(len(block) - 1):
                    if isinstance(block[i], nn.Conv2d) and isinstance(block[i + 1], nn.BatchNorm2d):
                        block[i], block[i + 1] = fuse_conv_bn_eval(block[i], block[i + 1]), nn.Identity()

    def __call__(self, images):
        with torch.inference_mode():
            return self.backbone(images.to(self.device))


def run():
    torch.manual_seed(0)
    extract = Extractor()
    torch.manual_seed(1)
    return extract(torch.rand(1, 3, 16, 16))
