"""SiamRPN/SiamFC-like: one backbone for the template and the search region, compared by depthwise correlation."""

from __future__ import annotations

import random

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..family import Family
from ..job import Job
from ..making import Normalize, choose_batch_size, make_job
from ..marks import to_host


def conv3x3(cin: int, cout: int, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, stride, 1, bias=False), nn.BatchNorm2d(cout), nn.LeakyReLU(0.1, inplace=True)
    )


class Correlation(nn.Module):
    """The template's features slide over the search region's, channel by channel, for all images in one call."""

    def __init__(self, channels: int, hidden: int) -> None:
        super().__init__()
        self.kernel = conv3x3(channels, hidden)
        self.search = conv3x3(channels, hidden)
        self.head = nn.Sequential(
            nn.Conv2d(hidden, hidden, 1, bias=False), nn.BatchNorm2d(hidden), nn.ReLU(inplace=True)
        )

    def forward(self, template: Tensor, search: Tensor) -> Tensor:
        kernel, search = self.kernel(template), self.search(search)
        batch, channels = search.shape[:2]
        folded = search.reshape(1, batch * channels, *search.shape[2:])
        weight = kernel.reshape(batch * channels, 1, *kernel.shape[2:])
        compared = F.conv2d(folded, weight, groups=batch * channels, padding=kernel.shape[-1] // 2)
        return self.head(compared.view(batch, channels, *compared.shape[2:]))


class SiameseTracker(nn.Module):
    def __init__(self, width: int, depth: int, hidden: int) -> None:
        super().__init__()
        self.normalize = Normalize()
        layers = [conv3x3(3, width, 2)]
        for stage in range(2):
            layers += [conv3x3(width << stage, width << (stage + 1), 2)]
            layers += [conv3x3(width << (stage + 1), width << (stage + 1)) for _ in range(depth)]
        self.backbone = nn.Sequential(*layers)
        channels = width << 2
        self.classify, self.locate = Correlation(channels, hidden), Correlation(channels, hidden)
        self.score, self.offsets = nn.Conv2d(hidden, 1, 1), nn.Conv2d(hidden, 4, 1)

    def forward(self, template: Tensor, search: Tensor) -> tuple[Tensor, Tensor]:
        """(batch, height, width) and (batch, 4, height, width)."""
        z, x = self.backbone(self.normalize(template)), self.backbone(self.normalize(search))
        return self.score(self.classify(z, x)).squeeze(1), self.offsets(self.locate(z, x)).float().exp()


def tracking_loss(outputs: tuple[Tensor, Tensor], targets: tuple[Tensor]) -> Tensor:
    """The target's box as centre and size, in shares of the search region."""
    scores, offsets = outputs
    box = targets[0]
    side = scores.shape[-1]
    cells = (torch.arange(side, device=scores.device) + 0.5) / side
    dx = cells[None, None, :] - box[:, 0, None, None]
    dy = cells[None, :, None] - box[:, 1, None, None]
    half_width, half_height = box[:, 2, None, None] / 2, box[:, 3, None, None] / 2
    inside = ((dx.abs() < half_width) & (dy.abs() < half_height)).to(scores.dtype)
    wanted = torch.stack(
        torch.broadcast_tensors(half_width + dx, half_height + dy, half_width - dx, half_height - dy), 1
    )
    near = (F.l1_loss(offsets / side, wanted, reduction="none").mean(1) * inside).sum() / inside.sum().clamp(min=1)
    return F.binary_cross_entropy_with_logits(scores, inside) + near


def best_box(outputs: tuple[Tensor, Tensor]) -> Tensor:
    """(batch, 5): left, top, right, bottom in cells, and the score; weighted by a window round the last place."""
    scores, offsets = outputs
    side = scores.shape[-1]
    score, at = scores.float().sigmoid().flatten(1).max(1)
    sides = offsets.flatten(2).gather(2, at[:, None, None].expand(-1, 4, 1)).squeeze(2)
    centre = torch.stack((at % side, at.div(side, rounding_mode="floor")), 1)
    return to_host(torch.cat((centre - sides[:, :2], centre + sides[:, 2:], score[:, None]), 1))


def make(rng: random.Random, training: bool) -> Job:
    """Width 16 to 32, templates of 48 or 64 pixels in regions of twice the side."""
    width, side = rng.choice([(16, 64), (24, 48), (32, 48), (24, 64)])
    return make_job(
        "siamese_tracker",
        SiameseTracker(width, rng.choice([1, 2]), rng.choice([64, 96])),
        training,
        choose_batch_size(rng, at_most=7 if side == 64 else 11),
        inputs=lambda draw: (draw.image(3, side, side), draw.image(3, 2 * side, 2 * side)),
        targets=lambda draw: (0.3 + 0.4 * draw.uniform(4),),
        loss=tracking_loss,
        postprocess=best_box,
    )


FAMILY = Family("siamese_tracker", "tracking", make)
