from collections import OrderedDict

import torch
import torch.nn as nn

from .blocks import ConvBlock, upsample


class Down(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.body = nn.Sequential(OrderedDict([
            ("conv1", nn.Conv2d(cin, cout, 3, 2, 1)), ("bn1", nn.BatchNorm2d(cout)), ("relu1", nn.ReLU()),
            ("conv2", nn.Conv2d(cout, cout, 3, 1, 1)), ("bn2", nn.BatchNorm2d(cout)), ("relu2", nn.ReLU()),
        ]))

    def forward(self, x):
        return self.body(x)


class Encoder(nn.Module):
    def __init__(self, num_ch_enc=(16, 32, 64), num_images=1):
        super().__init__()
        self.num_ch_enc = num_ch_enc
        chans = (3 * num_images,) + tuple(num_ch_enc)
        self.layers = nn.ModuleList(Down(a, b) for a, b in zip(chans, chans[1:]))

    def forward(self, image):
        self.features = []
        x = (image - 0.45) / 0.225
        for layer in self.layers:
            x = layer(x)
            self.features.append(x)
        return self.features


class DepthDecoder(nn.Module):
    def __init__(self, num_ch_enc, scales=range(2)):
        super().__init__()
        self.scales = scales
        self.num_ch_dec = [8, 16, 32]
        self.convs = OrderedDict()
        for i in range(2, -1, -1):
            num_in = num_ch_enc[-1] if i == 2 else self.num_ch_dec[i + 1]
            self.convs[("upconv", i, 0)] = ConvBlock(num_in, self.num_ch_dec[i])
            num_in = self.num_ch_dec[i] + (num_ch_enc[i - 1] if i > 0 else 0)
            self.convs[("upconv", i, 1)] = ConvBlock(num_in, self.num_ch_dec[i])
        for s in self.scales:
            self.convs[("dispconv", s)] = nn.Conv2d(self.num_ch_dec[s], 1, 3, padding=1)
        self.decoder = nn.ModuleList(list(self.convs.values()))
        self.sigmoid = nn.Sigmoid()

    def forward(self, input_features):
        self.outputs = {}
        x = input_features[-1]
        for i in range(2, -1, -1):
            x = self.convs[("upconv", i, 0)](x)
            x = [upsample(x)]
            if i > 0:
                x += [input_features[i - 1]]
            x = torch.cat(x, 1)
            x = self.convs[("upconv", i, 1)](x)
            if i in self.scales:
                self.outputs[("disp", i)] = self.sigmoid(self.convs[("dispconv", i)](x))
        return self.outputs


class PoseNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = Encoder(num_images=2)
        self.squeeze = nn.Conv2d(64, 32, 1)
        self.pose = nn.Conv2d(32, 6, 1)
        self.relu = nn.ReLU()

    def forward(self, a, b):
        f = self.encoder(torch.cat([a, b], 1))[-1]
        out = self.relu(self.squeeze(f))
        out = self.pose(out).mean(3).mean(2)
        return 0.01 * out.view(-1, 1, 6)
