"""RetinaNet: a residual backbone, a feature pyramid, and heads shared by all levels over fixed anchors."""

from __future__ import annotations

import math
import random

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..boxes import pairwise_iou
from ..family import Family
from ..job import Job
from ..making import Normalize, choose_batch_size, detections, make_job
from .resnet import BasicBlock

ANCHORS = 6
"""Per cell: two scales and three ratios."""


class FPN(nn.Module):
    def __init__(self, in_channels: list[int], out_channels: int) -> None:
        super().__init__()
        self.lateral_convs = nn.ModuleList(nn.Conv2d(c, out_channels, 1) for c in in_channels)
        self.fpn_convs = nn.ModuleList(nn.Conv2d(out_channels, out_channels, 3, padding=1) for _ in in_channels)

    def forward(self, inputs: list[Tensor]) -> list[Tensor]:
        laterals = [conv(x) for conv, x in zip(self.lateral_convs, inputs, strict=True)]
        for i in range(len(laterals) - 1, 0, -1):
            laterals[i - 1] = laterals[i - 1] + F.interpolate(laterals[i], scale_factor=2.0, mode="nearest")
        return [conv(x) for conv, x in zip(self.fpn_convs, laterals, strict=True)]


class RetinaHead(nn.Module):
    def __init__(self, channels: int, num_classes: int, stacked_convs: int = 2) -> None:
        super().__init__()
        self.num_classes = num_classes
        self.cls_convs = self._tower(channels, stacked_convs)
        self.reg_convs = self._tower(channels, stacked_convs)
        self.retina_cls = nn.Conv2d(channels, ANCHORS * num_classes, 3, padding=1)
        self.retina_reg = nn.Conv2d(channels, ANCHORS * 4, 3, padding=1)
        assert self.retina_cls.bias is not None
        nn.init.constant_(self.retina_cls.bias, -math.log(99))

    @staticmethod
    def _tower(channels: int, depth: int) -> nn.Sequential:
        convs = [(nn.Conv2d(channels, channels, 3, padding=1), nn.ReLU(inplace=True)) for _ in range(depth)]
        return nn.Sequential(*(layer for pair in convs for layer in pair))

    def forward(self, feats: list[Tensor]) -> tuple[Tensor, Tensor]:
        """Per anchor: class scores and box deltas."""
        scores = [self._per_anchor(self.retina_cls(self.cls_convs(x)), self.num_classes) for x in feats]
        deltas = [self._per_anchor(self.retina_reg(self.reg_convs(x)), 4) for x in feats]
        return torch.cat(scores, 1), torch.cat(deltas, 1)

    @staticmethod
    def _per_anchor(x: Tensor, values: int) -> Tensor:
        return x.permute(0, 2, 3, 1).reshape(x.shape[0], -1, values)


class RetinaNet(nn.Module):
    anchors: Tensor

    def __init__(self, side: int, width: int, depth: int, channels: int, num_classes: int) -> None:
        super().__init__()
        self.normalize = Normalize()
        self.stem = nn.Sequential(
            nn.Conv2d(3, width, 7, 2, 3, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, 2, 1),
            *(BasicBlock(width, width) for _ in range(depth)),
        )
        self.stages = nn.ModuleList()
        for planes in (width, 2 * width, 4 * width):
            blocks = [BasicBlock(planes, 2 * planes, 2), *(BasicBlock(2 * planes, 2 * planes) for _ in range(depth))]
            self.stages.append(nn.Sequential(*blocks))
        self.neck = FPN([2 * width, 4 * width, 8 * width], channels)
        self.head = RetinaHead(channels, num_classes)
        self.register_buffer("anchors", torch.cat([make_anchors(side, 8 << level) for level in range(3)]))

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x = self.stem(self.normalize(image))
        feats = []
        for stage in self.stages:
            x = stage(x)
            feats.append(x)
        return *self.head(self.neck(feats)), self.anchors


def make_anchors(side: int, stride: int) -> Tensor:
    """Corners in shares of the image's side, cell by cell."""
    centers = (torch.arange(side // stride) + 0.5) * stride / side
    y, x = torch.meshgrid(centers, centers, indexing="ij")
    scales, ratios = torch.tensor([2.0, 3.0]), torch.tensor([0.5, 1.0, 2.0])
    w = (scales[:, None] * ratios.rsqrt()).flatten() * stride / side
    h = (scales[:, None] * ratios.sqrt()).flatten() * stride / side
    centre = torch.stack((x, y), -1).view(-1, 1, 2)
    half = torch.stack((w, h), -1) / 2
    return torch.cat((centre - half, centre + half), -1).view(-1, 4)


def retina_loss(outputs: tuple[Tensor, Tensor, Tensor], targets: tuple[Tensor, Tensor]) -> Tensor:
    logits, deltas, anchors = outputs
    labels, boxes = targets
    overlap, nearest = pairwise_iou(anchors, boxes).max(-1)
    positive = (overlap >= 0.4).unsqueeze(-1)
    wanted = F.one_hot(labels.gather(1, nearest), logits.shape[-1]) * positive
    count = positive.sum().clamp(min=1)
    aims = encode(anchors, boxes.gather(1, nearest.unsqueeze(-1).expand(-1, -1, 4)))
    box_loss = (F.smooth_l1_loss(deltas, aims, beta=0.1, reduction="none") * positive).sum() / count
    return focal_loss(logits, wanted.to(logits.dtype)).sum() / count + box_loss


def focal_loss(logits: Tensor, wanted: Tensor, alpha: float = 0.25) -> Tensor:
    """With gamma 2 (arXiv 1708.02002)."""
    loss = F.binary_cross_entropy_with_logits(logits, wanted, reduction="none")
    miss = torch.where(wanted > 0.5, logits, -logits).sigmoid().neg().add(1)
    return torch.where(wanted > 0.5, alpha, 1 - alpha) * miss.square() * loss


def encode(anchors: Tensor, boxes: Tensor) -> Tensor:
    sizes = anchors[:, 2:] - anchors[:, :2]
    shift = ((boxes[..., :2] + boxes[..., 2:]) - (anchors[:, :2] + anchors[:, 2:])) / (2 * sizes)
    return torch.cat((shift, ((boxes[..., 2:] - boxes[..., :2]) / sizes).log()), -1)


def decode(anchors: Tensor, deltas: Tensor) -> Tensor:
    sizes = anchors[:, 2:] - anchors[:, :2]
    centre = (anchors[:, :2] + anchors[:, 2:]) / 2 + deltas[..., :2] * sizes
    half = sizes * deltas[..., 2:].clamp(max=4).exp() / 2
    return torch.cat((centre - half, centre + half), -1).clamp(0, 1)


def predict(outputs: tuple[Tensor, Tensor, Tensor]) -> Tensor:
    logits, deltas, anchors = outputs
    return detections(decode(anchors, deltas.float()), logits.sigmoid())


def make(rng: random.Random, training: bool) -> Job:
    """Width 16 or 24, pyramids of 32 to 64 channels, images of 96 or 128 pixels, eight objects each."""
    width, depth, channels = rng.choice([(16, 1, 32), (16, 1, 48), (24, 1, 48), (24, 0, 64)])
    side = rng.choice([64, 96, 128])
    num_classes = rng.choice([8, 16, 24])
    model = RetinaNet(side, width, depth, channels, num_classes)
    return make_job(
        "retinanet",
        model,
        training,
        choose_batch_size(rng, at_most=11, beside=model.anchors.shape),
        inputs=lambda draw: (draw.image(3, side, side),),
        targets=lambda draw: (draw.label(num_classes, 8), draw.boxes(8)),
        loss=retina_loss,
        postprocess=predict,
    )


FAMILY = Family("retinanet", "detection", make)
