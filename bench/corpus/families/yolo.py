"""YOLO-like: cross-stage partial blocks, a path aggregation neck, and one prediction a cell on three scales."""

from __future__ import annotations

import random
from functools import partial

import torch
from torch import nn
from torch.nn import functional as F

from ..blocks import ConvNormAct
from ..boxes import pairwise_iou
from ..family import Family
from ..job import Job
from ..making import choose_batch_size, detections, make_job

Conv = partial(ConvNormAct, act=nn.SiLU)


class Bottleneck(nn.Module):
    def __init__(self, c, shortcut):
        super().__init__()
        self.cv1 = Conv(c, c, 1)
        self.cv2 = Conv(c, c, 3)
        self.add = shortcut

    def forward(self, x):
        return x + self.cv2(self.cv1(x)) if self.add else self.cv2(self.cv1(x))


class C3(nn.Module):
    def __init__(self, c1, c2, n=1, shortcut=True):
        super().__init__()
        c_ = c2 // 2
        self.cv1 = Conv(c1, c_, 1)
        self.cv2 = Conv(c1, c_, 1)
        self.cv3 = Conv(2 * c_, c2, 1)
        self.m = nn.Sequential(*(Bottleneck(c_, shortcut) for _ in range(n)))

    def forward(self, x):
        return self.cv3(torch.cat((self.m(self.cv1(x)), self.cv2(x)), 1))


class SPPF(nn.Module):
    def __init__(self, c1, c2, k=5):
        super().__init__()
        self.cv1 = Conv(c1, c1 // 2, 1)
        self.cv2 = Conv(c1 * 2, c2, 1)
        self.m = nn.MaxPool2d(k, 1, k // 2)

    def forward(self, x):
        x = self.cv1(x)
        y1 = self.m(x)
        y2 = self.m(y1)
        return self.cv2(torch.cat((x, y1, y2, self.m(y2)), 1))


class Detect(nn.Module):
    """Raw (batch, cells of all scales, 5 + classes, padded to a multiple of 8)."""

    def __init__(self, nc, ch):
        super().__init__()
        self.no = (5 + nc + 7) // 8 * 8
        self.m = nn.ModuleList(nn.Conv2d(c, self.no, 1) for c in ch)

    def forward(self, xs):
        return torch.cat([m(x).permute(0, 2, 3, 1).flatten(1, 2) for m, x in zip(self.m, xs, strict=True)], 1)


class YOLO(nn.Module):
    grid: torch.Tensor

    def __init__(self, imgsz, w, n, nc):
        super().__init__()
        self.nc = nc
        self.stem = Conv(3, w, 6, 2)
        self.p2 = nn.Sequential(Conv(w, 2 * w, 3, 2), C3(2 * w, 2 * w, n))
        self.p3 = nn.Sequential(Conv(2 * w, 4 * w, 3, 2), C3(4 * w, 4 * w, n))
        self.p4 = nn.Sequential(Conv(4 * w, 8 * w, 3, 2), C3(8 * w, 8 * w, n))
        self.p5 = nn.Sequential(Conv(8 * w, 16 * w, 3, 2), C3(16 * w, 16 * w, n), SPPF(16 * w, 16 * w))
        self.up = nn.Upsample(scale_factor=2, mode="nearest")
        self.lat5, self.lat4 = Conv(16 * w, 8 * w, 1), Conv(8 * w, 4 * w, 1)
        self.td4, self.td3 = C3(16 * w, 8 * w, n, False), C3(8 * w, 4 * w, n, False)
        self.down3, self.bu4 = Conv(4 * w, 4 * w, 3, 2), C3(8 * w, 8 * w, n, False)
        self.down4, self.bu5 = Conv(8 * w, 8 * w, 3, 2), C3(16 * w, 16 * w, n, False)
        self.detect = Detect(nc, (4 * w, 8 * w, 16 * w))
        cells = [imgsz // s for s in (8, 16, 32)]
        self.register_buffer("grid", torch.cat([corners(c) for c in cells]), persistent=False)
        self.register_buffer("cell", torch.cat([torch.full((c * c, 1), 1 / c) for c in cells]), persistent=False)

    def forward(self, im):
        x3 = self.p3(self.p2(self.stem(im / 255)))
        x4 = self.p4(x3)
        l5 = self.lat5(self.p5(x4))
        l4 = self.lat4(self.td4(torch.cat((self.up(l5), x4), 1)))
        n3 = self.td3(torch.cat((self.up(l4), x3), 1))
        n4 = self.bu4(torch.cat((self.down3(n3), l4), 1))
        n5 = self.bu5(torch.cat((self.down4(n4), l5), 1))
        raw = self.detect((n3, n4, n5)).float()
        xy = self.grid + (raw[..., :2].sigmoid() * 2 - 0.5) * self.cell
        half = (raw[..., 2:4].sigmoid() * 2).square() * self.cell * 2
        return torch.cat((xy - half, xy + half), -1), raw[..., 4], raw[..., 5 : 5 + self.nc]


def corners(cells):
    at = torch.arange(cells) / cells
    y, x = torch.meshgrid(at, at, indexing="ij")
    return torch.stack((x, y), -1).view(-1, 2)


def compute_loss(imgsz, preds, targets):
    """Each object belongs to the cells of its centre, one on every scale."""
    box, obj, cls = preds
    labels, tbox = targets
    centre, at, start = (tbox[..., :2] + tbox[..., 2:]) / 2, [], 0
    for cells in (imgsz // s for s in (8, 16, 32)):
        column, row = (centre * cells).long().clamp(0, cells - 1).unbind(-1)
        at.append(start + row * cells + column)
        start += cells * cells
    at = torch.cat(at, 1)
    pbox = box.gather(1, at.unsqueeze(-1).expand(-1, -1, 4))
    iou = pairwise_iou(pbox.unsqueeze(2), tbox.repeat(1, 3, 1).unsqueeze(2)).flatten(1)
    tobj = torch.zeros_like(obj).scatter(1, at, iou.detach().to(obj.dtype))
    tcls = F.one_hot(labels, cls.shape[-1]).repeat(1, 3, 1).to(cls.dtype)
    pcls = cls.gather(1, at.unsqueeze(-1).expand(-1, -1, cls.shape[-1]))
    lcls = F.binary_cross_entropy_with_logits(pcls, tcls)
    return 0.05 * (1 - iou).mean() + F.binary_cross_entropy_with_logits(obj, tobj) + 0.5 * lcls


def non_max_suppression(preds):
    box, obj, cls = preds
    return detections(box.clamp(0, 1), cls.sigmoid() * obj.sigmoid().unsqueeze(-1), threshold=0.45)


def make(rng: random.Random, training: bool) -> Job:
    """Width 8 to 16, one or two bottlenecks a block, images of 96 or 128 pixels."""
    w, n = rng.choice([(8, 1), (8, 2), (16, 1)])
    imgsz = rng.choice([96, 128] if w == 8 else [64, 96])
    nc = rng.choice([3, 11, 19])
    model = YOLO(imgsz, w, n, nc)
    return make_job(
        "yolo",
        model,
        training,
        choose_batch_size(rng, beside=(nc, *model.grid.shape)),
        inputs=lambda draw: (draw.image(3, imgsz, imgsz),),
        targets=lambda draw: (draw.label(nc, 8), draw.boxes(8)),
        loss=partial(compute_loss, imgsz),
        postprocess=non_max_suppression,
        make_optimizer=partial(torch.optim.SGD, lr=1e-3, momentum=0.9, nesterov=True, foreach=True),
    )


FAMILY = Family("yolo", "detection", make)
