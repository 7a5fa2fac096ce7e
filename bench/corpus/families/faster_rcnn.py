"""Faster R-CNN: proposals from one map, cut out by bilinear sampling, then classes and boxes of each."""

from __future__ import annotations

import random

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..boxes import batched_nms, pairwise_iou
from ..family import Family
from ..job import Job
from ..making import Normalize, choose_batch_size, detections, make_job
from .resnet import Bottleneck
from .retinanet import ANCHORS, decode, encode, make_anchors

POOL = 6
"""Samples along each side of a region."""


class RPN(nn.Module):
    anchors: Tensor

    def __init__(self, side: int, stride: int, channels: int, candidates: int, proposals: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)
        self.cls_logits = nn.Conv2d(channels, ANCHORS, 1)
        self.bbox_pred = nn.Conv2d(channels, ANCHORS * 4, 1)
        self.candidates, self.proposals = candidates, proposals
        self.register_buffer("anchors", make_anchors(side, stride))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = F.relu(self.conv(x))
        objectness = self.cls_logits(x).permute(0, 2, 3, 1).flatten(1)
        deltas = self.bbox_pred(x).permute(0, 2, 3, 1).reshape(x.shape[0], -1, 4)
        return objectness.float(), deltas.float()

    @torch.no_grad()
    def propose(self, objectness: Tensor, deltas: Tensor) -> Tensor:
        """(batch, proposals, 4): those that suppression leaves come first. The count is fixed, so nothing waits."""
        scores, index = objectness.topk(self.candidates, dim=1)
        boxes = decode(self.anchors, deltas).gather(1, index.unsqueeze(-1).expand(-1, -1, 4))
        image = torch.arange(len(boxes), device=boxes.device).repeat_interleave(self.candidates)
        keep = batched_nms(boxes.flatten(0, 1), scores.flatten(), image, 0.7)
        kept = torch.zeros_like(scores).flatten().index_fill(0, keep, 1.0).view_as(scores)
        order = (scores.sigmoid() + kept).topk(self.proposals, dim=1).indices
        return boxes.gather(1, order.unsqueeze(-1).expand(-1, -1, 4))


class RoIHead(nn.Module):
    steps: Tensor

    def __init__(self, channels: int, hidden: int, num_classes: int) -> None:
        super().__init__()
        self.fc6 = nn.Linear(channels * POOL**2, hidden)
        self.fc7 = nn.Linear(hidden, hidden)
        self.cls_score = nn.Linear(hidden, num_classes)
        self.bbox_pred = nn.Linear(hidden, num_classes * 4)
        self.register_buffer("steps", (torch.arange(POOL) + 0.5) / POOL)

    def align(self, x: Tensor, boxes: Tensor) -> Tensor:
        low, size = boxes[..., :2], boxes[..., 2:] - boxes[..., :2]
        at = 2 * (low.unsqueeze(-1) + size.unsqueeze(-1) * self.steps) - 1
        across = at[:, :, 0, None, :].expand(-1, -1, POOL, -1)
        down = at[:, :, 1, :, None].expand(-1, -1, -1, POOL)
        grid = torch.stack((across, down), -1).flatten(1, 2).to(x.dtype)
        regions = F.grid_sample(x, grid, align_corners=False)
        return regions.unflatten(2, (-1, POOL)).transpose(1, 2).flatten(2)

    def forward(self, x: Tensor, boxes: Tensor) -> tuple[Tensor, Tensor]:
        x = F.relu(self.fc7(F.relu(self.fc6(self.align(x, boxes)))))
        return self.cls_score(x), self.bbox_pred(x).unflatten(-1, (-1, 4))


class FasterRCNN(nn.Module):
    def __init__(self, side: int, width: int, blocks: int, hidden: int, num_classes: int) -> None:
        super().__init__()
        self.normalize = Normalize()
        channels = 4 * width * 2
        self.backbone = nn.Sequential(
            nn.Conv2d(3, width, 7, 2, 3, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, 2, 1),
            Bottleneck(width, width),
            *(Bottleneck(4 * width, width) for _ in range(blocks)),
            Bottleneck(4 * width, 2 * width, 2),
            *(Bottleneck(channels, 2 * width) for _ in range(blocks)),
        )
        self.reduce = nn.Conv2d(channels, 64, 1)
        self.rpn = RPN(side, 8, 64, candidates=64, proposals=32)
        self.roi_head = RoIHead(64, hidden, num_classes)

    def forward(self, image: Tensor):
        x = self.reduce(self.backbone(self.normalize(image)))
        objectness, deltas = self.rpn(x)
        proposals = self.rpn.propose(objectness, deltas)
        scores, refinements = self.roi_head(x, proposals)
        return objectness, deltas, self.rpn.anchors, proposals, scores.float(), refinements.float()


def rcnn_loss(outputs: tuple[Tensor, ...], targets: tuple[Tensor, Tensor]) -> Tensor:
    """Class 0 is the background."""
    objectness, deltas, anchors, proposals, scores, refinements = outputs
    labels, boxes = targets
    rpn_wanted, rpn_boxes, _ = assign(anchors, boxes, 0.4)
    loss_objectness = F.binary_cross_entropy_with_logits(objectness, rpn_wanted)
    loss_rpn = masked_box_loss(deltas, encode(anchors, rpn_boxes), rpn_wanted)
    wanted, near, nearest = assign(proposals, boxes, 0.3)
    classes = labels.gather(1, nearest) * wanted.long()
    loss_classes = F.cross_entropy(scores.flatten(0, 1), classes.flatten())
    own = refinements.gather(2, classes[..., None, None].expand(-1, -1, 1, 4)).squeeze(2)
    return loss_objectness + loss_rpn + loss_classes + masked_box_loss(own, near - proposals, wanted)


def assign(places: Tensor, boxes: Tensor, threshold: float) -> tuple[Tensor, Tensor, Tensor]:
    """1 where a place holds an object, the nearest object's box, and its number."""
    overlap, nearest = pairwise_iou(places, boxes).max(-1)
    near = boxes.gather(1, nearest.unsqueeze(-1).expand(-1, -1, 4))
    return (overlap >= threshold).float(), near, nearest


def masked_box_loss(predicted: Tensor, wanted: Tensor, mask: Tensor) -> Tensor:
    each = F.smooth_l1_loss(predicted, wanted, reduction="none").sum(-1)
    return (each * mask).sum() / mask.sum().clamp(min=1)


def predict(outputs: tuple[Tensor, ...]) -> Tensor:
    _, _, _, proposals, scores, refinements = outputs
    chance = scores.softmax(-1)
    best = chance[..., 1:].argmax(-1) + 1
    moved = refinements.gather(2, best[..., None, None].expand(-1, -1, 1, 4)).squeeze(2)
    return detections((proposals + moved).clamp(0, 1), chance[..., 1:])


def make(rng: random.Random, training: bool) -> Job:
    """Width 16 or 24, one or two blocks a stage, images of 96 or 128 pixels, 32 proposals each."""
    width, blocks = rng.choice([(16, 1), (16, 2), (24, 1)])
    side = rng.choice([96, 128])
    num_classes = rng.choice([16, 24, 32])
    return make_job(
        "faster_rcnn",
        FasterRCNN(side, width, blocks, rng.choice([128, 256]), num_classes),
        training,
        choose_batch_size(rng, at_most=11 if side == 96 else 7),
        inputs=lambda draw: (draw.image(3, side, side),),
        targets=lambda draw: (1 + draw.label(num_classes - 1, 8), draw.boxes(8)),
        loss=rcnn_loss,
        postprocess=predict,
    )


FAMILY = Family("faster_rcnn", "detection", make)
