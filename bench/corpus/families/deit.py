"""DeiT: a vision transformer that also learns from a convolutional teacher, through a distillation token."""

from __future__ import annotations

import random

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..family import Family
from ..job import Job
from ..making import Normalize, choose_batch_size, make_job, top_classes


class Block(nn.Module):
    """LayerScale as in DeiT III."""

    def __init__(self, dim: int, num_heads: int, init_values: float = 1e-4) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.norm1 = nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, dim * 3)
        self.proj = nn.Linear(dim, dim)
        self.gamma1 = nn.Parameter(init_values * torch.ones(dim))
        self.norm2 = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, dim * 4), nn.GELU(), nn.Linear(dim * 4, dim))
        self.gamma2 = nn.Parameter(init_values * torch.ones(dim))

    def attention(self, x: Tensor) -> Tensor:
        B, N, C = x.shape
        q, k, v = self.qkv(x).reshape(B, N, 3, self.num_heads, C // self.num_heads).permute(2, 0, 3, 1, 4).unbind(0)
        x = F.scaled_dot_product_attention(q, k, v)
        return self.proj(x.transpose(1, 2).reshape(B, N, C))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.gamma1 * self.attention(self.norm1(x))
        return x + self.gamma2 * self.mlp(self.norm2(x))


class DeiT(nn.Module):
    def __init__(self, img_size: int, patch_size: int, dim: int, depth: int, num_heads: int, num_classes: int) -> None:
        super().__init__()
        self.normalize = Normalize()
        self.patch_embed = nn.Conv2d(3, dim, patch_size, patch_size)
        self.special_tokens = nn.Parameter(0.02 * torch.randn(1, 2, dim))
        self.pos_embed = nn.Parameter(0.02 * torch.randn(1, (img_size // patch_size) ** 2, dim))
        self.blocks = nn.ModuleList([Block(dim, num_heads) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, num_classes)
        self.head_dist = nn.Linear(dim, num_classes)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = self.patch_embed(x).flatten(2).transpose(1, 2) + self.pos_embed
        x = torch.cat([self.special_tokens.expand(x.shape[0], -1, -1), x], dim=1)
        for block in self.blocks:
            x = block(x)
        x = self.norm(x[:, :2])
        return self.head(x[:, 0]), self.head_dist(x[:, 1])


class Teacher(nn.Sequential):
    """A small frozen CNN."""

    def __init__(self, width: int, num_classes: int) -> None:
        layers = []
        for c_in, c_out in ((3, width), (width, 2 * width), (2 * width, 4 * width), (4 * width, 4 * width)):
            layers += [nn.Conv2d(c_in, c_out, 3, 2, 1), nn.ReLU(inplace=True)]
        super().__init__(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4 * width, num_classes))
        self.requires_grad_(False)


class Distilled(nn.Module):
    """Training: the student's two answers and the teacher's. Inference: the mean of the student's."""

    def __init__(self, student: DeiT, teacher: nn.Module | None) -> None:
        super().__init__()
        self.student = student
        self.teacher = teacher

    def forward(self, image: Tensor):
        image = self.student.normalize(image)
        logits, distilled = self.student(image)
        if self.teacher is None:
            return (logits + distilled) / 2
        with torch.no_grad():
            return logits, distilled, self.teacher(image)


def hard_distillation(outputs: tuple[Tensor, Tensor, Tensor], targets: tuple[Tensor, ...]) -> Tensor:
    logits, distilled, teacher = outputs
    return (F.cross_entropy(logits, targets[0]) + F.cross_entropy(distilled, teacher.argmax(1))) / 2


def make(rng: random.Random, training: bool) -> Job:
    """Four to six blocks of width 192 or 256."""
    dim, num_heads, depth = rng.choice([(192, 3, 6), (192, 6, 4), (256, 8, 4)])
    img_size, patch_size = rng.choice([(96, 16), (128, 16), (64, 8)])
    num_classes = rng.choice([72, 96, 128])
    student = DeiT(img_size, patch_size, dim, depth, num_heads, num_classes)
    return make_job(
        "deit",
        Distilled(student, Teacher(rng.choice([16, 24]), num_classes) if training else None),
        training,
        choose_batch_size(rng),
        inputs=lambda draw: (draw.image(3, img_size, img_size),),
        targets=lambda draw: (draw.label(num_classes),),
        loss=hard_distillation,
        postprocess=top_classes,
    )


FAMILY = Family("deit", "classification", make)
