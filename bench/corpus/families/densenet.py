"""DenseNet: every layer sees all before it."""

from __future__ import annotations

import random
from collections import OrderedDict

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..family import Family
from ..job import Job
from ..making import Normalize, choose_batch_size, make_job, top_classes


class _DenseLayer(nn.Module):
    def __init__(self, num_input_features: int, growth_rate: int, bn_size: int) -> None:
        super().__init__()
        self.norm1 = nn.BatchNorm2d(num_input_features)
        self.relu1 = nn.ReLU(inplace=True)
        self.conv1 = nn.Conv2d(num_input_features, bn_size * growth_rate, kernel_size=1, bias=False)
        self.norm2 = nn.BatchNorm2d(bn_size * growth_rate)
        self.relu2 = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(bn_size * growth_rate, growth_rate, kernel_size=3, padding=1, bias=False)

    def forward(self, features: list[Tensor]) -> Tensor:
        bottleneck = self.conv1(self.relu1(self.norm1(torch.cat(features, 1))))
        return self.conv2(self.relu2(self.norm2(bottleneck)))


class _DenseBlock(nn.Module):
    def __init__(self, num_layers: int, num_input_features: int, growth_rate: int, bn_size: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            _DenseLayer(num_input_features + i * growth_rate, growth_rate, bn_size) for i in range(num_layers)
        )

    def forward(self, init_features: Tensor) -> Tensor:
        features = [init_features]
        for layer in self.layers:
            features.append(layer(features))
        return torch.cat(features, 1)


class _Transition(nn.Sequential):
    def __init__(self, num_input_features: int, num_output_features: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(num_input_features)
        self.relu = nn.ReLU(inplace=True)
        self.conv = nn.Conv2d(num_input_features, num_output_features, kernel_size=1, bias=False)
        self.pool = nn.AvgPool2d(kernel_size=2, stride=2)


class DenseNet(nn.Module):
    def __init__(self, growth_rate: int, block_config: tuple[int, ...], num_classes: int) -> None:
        super().__init__()
        num_features = 2 * growth_rate
        self.features = nn.Sequential(
            OrderedDict(
                normalize=Normalize(),
                conv0=nn.Conv2d(3, num_features, kernel_size=5, stride=2, padding=2, bias=False),
                norm0=nn.BatchNorm2d(num_features),
                relu0=nn.ReLU(inplace=True),
                pool0=nn.MaxPool2d(kernel_size=3, stride=2, padding=1),
            )
        )
        for i, num_layers in enumerate(block_config):
            self.features.add_module(f"denseblock{i + 1}", _DenseBlock(num_layers, num_features, growth_rate, 4))
            num_features += num_layers * growth_rate
            if i < len(block_config) - 1:
                self.features.add_module(f"transition{i + 1}", _Transition(num_features, 4 * growth_rate))
                num_features = 4 * growth_rate
        self.features.add_module("norm5", nn.BatchNorm2d(num_features))
        self.features.add_module("relu5", nn.ReLU(inplace=True))
        self.classifier = nn.Linear(num_features, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        features = self.features(x)
        return self.classifier(features.mean(dim=(2, 3)))


def make(rng: random.Random, training: bool) -> Job:
    """Two or three dense blocks of two to eight layers, growth 16 or 32."""
    growth_rate, block_config = rng.choice([(16, (4, 6, 8)), (16, (6, 6, 6)), (32, (4, 2)), (32, (4, 2, 2))])
    side = rng.choice([64, 96] if growth_rate == 16 else [48, 64])
    num_classes = rng.choice([32, 96, 128])
    model = DenseNet(growth_rate, block_config, num_classes)
    widths = [module.num_features for module in model.modules() if isinstance(module, nn.BatchNorm2d)]
    return make_job(
        "densenet",
        model,
        training,
        choose_batch_size(rng, beside=widths),
        inputs=lambda draw: (draw.image(3, side, side),),
        targets=lambda draw: (draw.label(num_classes),),
        loss=lambda logits, targets: F.cross_entropy(logits, targets[0]),
        postprocess=top_classes,
    )


FAMILY = Family("densenet", "classification", make)
