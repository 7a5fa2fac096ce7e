"""FCOS: every cell of every level says what is there, how far the box's sides are, and how central it is."""

from __future__ import annotations

import random
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..blocks import ConvNormAct
from ..boxes import area, pairwise_iou
from ..family import Family
from ..job import Job
from ..making import Normalize, choose_batch_size, detections, make_job
from .retinanet import FPN, focal_loss

Outputs = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]


class Stage(nn.Sequential):
    def __init__(self, inputs: int, outputs: int, depth: int) -> None:
        super().__init__(ConvNormAct(inputs, outputs, stride=2), *(ConvNormAct(outputs, outputs) for _ in range(depth)))


class Tower(nn.Sequential):
    def __init__(self, channels: int, depth: int) -> None:
        norm = partial(nn.GroupNorm, 8)
        super().__init__(*(ConvNormAct(channels, channels, norm=norm) for _ in range(depth)))


class FCOS(nn.Module):
    points: Tensor
    strides: Tensor

    def __init__(self, side: int, widths: tuple[int, ...], depth: int, channels: int, classes: int) -> None:
        super().__init__()
        self.normalize = Normalize()
        self.stem = ConvNormAct(3, widths[0] // 2, kernel=7, stride=4)
        inputs = [widths[0] // 2, *widths[:-1]]
        self.stages = nn.ModuleList(Stage(a, b, depth) for a, b in zip(inputs, widths, strict=True))
        self.neck = FPN(list(widths), channels)
        self.class_tower, self.box_tower = Tower(channels, 2), Tower(channels, 2)
        self.class_head = nn.Conv2d(channels, classes, 3, padding=1)
        self.box_head = nn.Conv2d(channels, 8, 3, padding=1)
        cells = [side // (8 << level) for level in range(len(widths))]
        self.register_buffer("points", torch.cat([grid_points(count) for count in cells]))
        self.register_buffer("strides", torch.cat([torch.full((count**2,), 1 / count) for count in cells]))

    def forward(self, image: Tensor) -> Outputs:
        """Class scores, the four distances and the centredness of each cell; where and how large the cells are."""
        x = self.stem(self.normalize(image))
        maps = []
        for stage in self.stages:
            x = stage(x)
            maps.append(x)
        maps = self.neck(maps)
        classes = torch.cat([self.class_head(self.class_tower(each)).flatten(2) for each in maps], -1)
        geometry = torch.cat([self.box_head(self.box_tower(each)).flatten(2) for each in maps], -1).mT
        distances = F.softplus(geometry[..., :4]) * self.strides[:, None]
        return classes.mT, distances, geometry[..., 4], self.points, self.strides


def grid_points(count: int) -> Tensor:
    centres = (torch.arange(count) + 0.5) / count
    y, x = torch.meshgrid(centres, centres, indexing="ij")
    return torch.stack((x, y), -1).view(-1, 2)


def to_boxes(points: Tensor, distances: Tensor) -> Tensor:
    return torch.cat((points - distances[..., :2], points + distances[..., 2:]), -1)


def fcos_loss(outputs: Outputs, targets: tuple[Tensor, Tensor]) -> Tensor:
    classes, distances, centred, points, strides = outputs
    labels, boxes = targets
    sides = torch.cat((points[:, None] - boxes[:, None, :, :2], boxes[:, None, :, 2:] - points[:, None]), -1)
    reach = sides.amax(-1)
    fits = (sides.amin(-1) > 0) & (reach < 8 * strides[:, None])
    size, chosen = torch.where(fits, area(boxes)[:, None], 2.0).min(-1)
    positive = (size < 2).float()
    count = positive.sum().clamp(min=1)
    wanted = F.one_hot(labels.gather(1, chosen), classes.shape[-1]) * positive.unsqueeze(-1)
    aim = sides.gather(2, chosen[..., None, None].expand(-1, -1, 1, 4)).squeeze(2).clamp(min=1e-4)
    across, down = aim[..., 0::2], aim[..., 1::2]
    centre = (across.amin(-1) / across.amax(-1) * down.amin(-1) / down.amax(-1)).sqrt()
    overlap = pairwise_iou(to_boxes(points, distances).unsqueeze(2), to_boxes(points, aim).unsqueeze(2))
    box_loss = ((1 - overlap[..., 0, 0]) * positive * centre).sum()
    centre_loss = (
        F.binary_cross_entropy_with_logits(centred, centre.to(centred.dtype), reduction="none") * positive
    ).sum()
    return (focal_loss(classes, wanted.to(classes.dtype)).sum() + box_loss + centre_loss) / count


def predict(outputs: Outputs) -> Tensor:
    classes, distances, centred, points, _ = outputs
    scores = (classes.float().sigmoid() * centred.float().sigmoid().unsqueeze(-1)).sqrt()
    return detections(to_boxes(points, distances.float()).clamp(0, 1), scores, threshold=0.6)


def make(rng: random.Random, training: bool) -> Job:
    """Three levels, 48 or 64 channels in the heads, images of 96 or 128 pixels."""
    widths, depth = rng.choice([((32, 64, 128), 2), ((48, 96, 144), 1), ((64, 128, 192), 1)])
    channels = rng.choice([48, 64, 96])
    side = rng.choice([96, 128])
    classes = rng.choice([8, 16, 24])
    model = FCOS(side, widths, depth, channels, classes)
    return make_job(
        "fcos",
        model,
        training,
        choose_batch_size(rng, beside=model.points.shape),
        inputs=lambda draw: (draw.image(3, side, side),),
        targets=lambda draw: (draw.label(classes, 8), draw.boxes(8)),
        loss=fcos_loss,
        postprocess=predict,
    )


FAMILY = Family("fcos", "detection", make)
