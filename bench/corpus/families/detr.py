"""DETR: a set of queries, each of which becomes one object or none; matched with the targets."""

from __future__ import annotations

import random
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..blocks import CrossAttention, Mlp
from ..boxes import Matcher, pairwise_iou, to_corners
from ..family import Family
from ..job import Job
from ..making import Normalize, choose_batch_size, detections, make_job
from .resnet import BasicBlock


class EncoderLayer(nn.Module):
    def __init__(self, d_model: int, nhead: int) -> None:
        super().__init__()
        self.self_attn = nn.MultiheadAttention(d_model, nhead, batch_first=True)
        self.norm1 = nn.LayerNorm(d_model)
        self.mlp = Mlp(d_model, 4 * d_model, act=nn.ReLU)
        self.norm2 = nn.LayerNorm(d_model)

    def forward(self, src: Tensor) -> Tensor:
        src = self.norm1(src + self.self_attn(src, src, src, need_weights=False)[0])
        return self.norm2(src + self.mlp(src))


class DecoderLayer(nn.Module):
    def __init__(self, d_model: int, nhead: int) -> None:
        super().__init__()
        self.self_attn = nn.MultiheadAttention(d_model, nhead, batch_first=True)
        self.norm1 = nn.LayerNorm(d_model)
        self.cross_attn = CrossAttention(d_model, nhead)
        self.norm2 = nn.LayerNorm(d_model)
        self.mlp = Mlp(d_model, 4 * d_model, act=nn.ReLU)
        self.norm3 = nn.LayerNorm(d_model)

    def forward(self, tgt: Tensor, memory: Tensor) -> Tensor:
        tgt = self.norm1(tgt + self.self_attn(tgt, tgt, tgt, need_weights=False)[0])
        tgt = self.norm2(tgt + self.cross_attn(tgt, memory))
        return self.norm3(tgt + self.mlp(tgt))


class DETR(nn.Module):
    def __init__(
        self, side: int, width: int, d_model: int, layers: tuple[int, int], num_queries: int, num_classes: int
    ) -> None:
        super().__init__()
        self.normalize = Normalize()
        self.backbone = nn.Sequential(
            nn.Conv2d(3, width, 7, 2, 3, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, 2, 1),
            BasicBlock(width, width),
            BasicBlock(width, 2 * width, 2),
            BasicBlock(2 * width, 4 * width, 2),
        )
        self.input_proj = nn.Conv2d(4 * width, d_model, 1)
        self.pos_embed = nn.Parameter(0.02 * torch.randn(1, (side // 16) ** 2, d_model))
        self.query_embed = nn.Parameter(torch.randn(1, num_queries, d_model))
        nhead = d_model // 32
        self.encoder = nn.Sequential(*(EncoderLayer(d_model, nhead) for _ in range(layers[0])))
        self.decoder = nn.ModuleList(DecoderLayer(d_model, nhead) for _ in range(layers[1]))
        self.matcher = Matcher()
        self.class_embed = nn.Linear(d_model, num_classes)
        self.bbox_embed = nn.Sequential(Mlp(d_model, d_model, act=nn.ReLU), nn.ReLU(), nn.Linear(d_model, 4))

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor]:
        """(layers, batch, queries, classes) and (layers, batch, queries, 4); one layer when it does not train."""
        features = self.input_proj(self.backbone(self.normalize(image)))
        memory = self.encoder(features.flatten(2).transpose(1, 2) + self.pos_embed)
        tgt = self.query_embed.expand(len(memory), -1, -1)
        hidden = []
        for layer in self.decoder:
            tgt = layer(tgt, memory)
            hidden.append(tgt)
        hs = torch.stack(hidden if self.training else hidden[-1:])
        return self.class_embed(hs).float(), self.bbox_embed(hs).float().sigmoid()


def set_loss(matcher: Matcher, outputs: tuple[Tensor, Tensor], targets: tuple[Tensor, Tensor]) -> Tensor:
    """The last class is "no object". All layers are matched at once."""
    logits, boxes = (each.flatten(0, 1) for each in outputs)
    repeats = len(outputs[0])
    labels, wanted_boxes = targets[0].repeat(repeats, 1), targets[1].repeat(repeats, 1, 1)
    query = matcher(logits, boxes, labels, wanted_boxes)
    none = logits.shape[-1] - 1
    classes = torch.full(logits.shape[:2], none, device=logits.device).scatter(1, query, labels)
    weight = torch.ones(none + 1, device=logits.device).index_fill(0, classes.new_full((1,), none), 0.1)
    class_loss = F.cross_entropy(logits.flatten(0, 1), classes.flatten(), weight)
    found = boxes.gather(1, query.unsqueeze(-1).expand(-1, -1, 4))
    overlap = pairwise_iou(to_corners(found).unsqueeze(2), to_corners(wanted_boxes).unsqueeze(2))
    return class_loss + 5 * F.l1_loss(found, wanted_boxes) + 2 * (1 - overlap).mean()


def predict(outputs: tuple[Tensor, Tensor]) -> Tensor:
    logits, boxes = outputs[0][-1], outputs[1][-1]
    return detections(to_corners(boxes), logits.softmax(-1)[..., :-1], count=24, threshold=0.8)


def make(rng: random.Random, training: bool) -> Job:
    """Two or three layers each of width 96 to 192, 24 or 48 queries, images of 96 or 128 pixels."""
    side = rng.choice([96, 128])
    d_model = rng.choice([96, 128, 192])
    layers = rng.choice([(2, 2), (2, 3), (3, 3)])
    num_classes = rng.choice([16, 24, 48])
    model = DETR(side, rng.choice([16, 24]), d_model, layers, rng.choice([24, 48]), num_classes)
    return make_job(
        "detr",
        model,
        training,
        choose_batch_size(rng, at_most=11),
        inputs=lambda draw: (draw.image(3, side, side),),
        targets=lambda draw: (draw.label(num_classes - 1, 8), 0.2 + 0.4 * draw.uniform(8, 4)),
        loss=partial(set_loss, model.matcher),
        postprocess=predict,
    )


FAMILY = Family("detr", "detection", make)
