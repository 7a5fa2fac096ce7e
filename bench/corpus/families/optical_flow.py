"""RAFT-like optical flow: a pyramid of all correlations, looked up round the present guess, and a recurrent update."""

from __future__ import annotations

import random
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..blocks import ConvNormAct, Residual
from ..family import Family
from ..job import Job
from ..making import Normalize, choose_batch_size, make_job
from ..marks import to_host

RADIUS = 2
"""Cells looked at round the guess, in every direction."""
LEVELS = 2


class ConvGRU(nn.Module):
    def __init__(self, hidden: int, inputs: int) -> None:
        super().__init__()
        self.gates = nn.Conv2d(hidden + inputs, 2 * hidden, 3, padding=1)
        self.candidate = nn.Conv2d(hidden + inputs, hidden, 3, padding=1)

    def forward(self, state: Tensor, x: Tensor) -> Tensor:
        update, reset = self.gates(torch.cat((state, x), 1)).sigmoid().chunk(2, 1)
        new = self.candidate(torch.cat((reset * state, x), 1)).tanh()
        return torch.lerp(state, new, update)


class OpticalFlow(nn.Module):
    cells: Tensor
    around: Tensor

    def __init__(self, side: int, width: int, hidden: int, iterations: int) -> None:
        super().__init__()
        conv = partial(ConvNormAct, norm=nn.BatchNorm2d)
        self.iterations = iterations
        self.normalize = Normalize((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
        self.features = nn.Sequential(
            conv(3, width, 7, 2), conv(width, 2 * width, 3, 2), Residual(conv(2 * width, 2 * width)),
            conv(2 * width, 4 * width, 3, 2), Residual(conv(4 * width, 4 * width)), nn.Conv2d(4 * width, 4 * width, 1),
        )  # fmt: skip
        self.context = nn.Conv2d(4 * width, 2 * hidden, 1)
        looked_at = LEVELS * (2 * RADIUS + 1) ** 2
        self.motion = nn.Sequential(nn.Conv2d(looked_at, hidden, 1), nn.ReLU())
        self.flow_in = nn.Sequential(nn.Conv2d(2, 8, 7, padding=3), nn.ReLU())
        self.gru = ConvGRU(hidden, 2 * hidden + 8)
        self.head = nn.Sequential(
            nn.Conv2d(hidden, hidden, 3, padding=1), nn.ReLU(), nn.Conv2d(hidden, 2, 3, padding=1)
        )
        grid = side // 8
        y, x = torch.meshgrid(torch.arange(grid), torch.arange(grid), indexing="ij")
        self.register_buffer("cells", torch.stack((x, y)).float().unsqueeze(0))
        step = torch.arange(-RADIUS, RADIUS + 1).float()
        y, x = torch.meshgrid(step, step, indexing="ij")
        self.register_buffer("around", torch.stack((x, y), -1).view(1, 1, -1, 2))

    def forward(self, first: Tensor, second: Tensor) -> list[Tensor]:
        """The flow after each iteration, in cells, (batch, 2, height / 8, width / 8); only the last when it does not
        train."""
        a, b = self.features(torch.cat((self.normalize(first), self.normalize(second)))).chunk(2)
        pyramid = self.correlate(a, b)
        state, context = self.context(a).chunk(2, 1)
        state, context = state.tanh(), context.relu()
        at, flows = self.cells.expand(len(a), -1, -1, -1), []
        for _ in range(self.iterations):
            flow = at.detach() - self.cells
            x = torch.cat((self.motion(self.look_up(pyramid, at.detach())), self.flow_in(flow), context), 1)
            state = self.gru(state, x)
            at = at.detach() + self.head(state)
            flows.append(at - self.cells)
        return flows if self.training else flows[-1:]

    def correlate(self, a: Tensor, b: Tensor) -> list[Tensor]:
        """(batch * cells, 1, height, width) and each time half as large: every cell against all others."""
        height, width = a.shape[2:]
        scores = torch.bmm(a.flatten(2).mT, b.flatten(2)) / a.shape[1] ** 0.5
        levels = [scores.view(-1, 1, height, width)]
        for _ in range(LEVELS - 1):
            levels.append(F.avg_pool2d(levels[-1], 2))
        return levels

    def look_up(self, pyramid: list[Tensor], at: Tensor) -> Tensor:
        batch, _, height, width = at.shape
        centre = at.permute(0, 2, 3, 1).reshape(-1, 1, 1, 2)
        seen = []
        for level, scores in enumerate(pyramid):
            place = (centre / 2**level + self.around) * (2 / (scores.shape[-1] - 1)) - 1
            seen.append(
                F.grid_sample(scores, place.to(scores.dtype), align_corners=True).view(batch, height, width, -1)
            )
        return torch.cat(seen, -1).permute(0, 3, 1, 2)


def sequence_loss(flows: list[Tensor], targets: tuple[Tensor], gamma: float = 0.8) -> Tensor:
    """Later guesses weigh more."""
    each = (torch.stack(flows) - targets[0]).abs().mean((1, 2, 3, 4))
    return sum((gamma ** (len(flows) - 1 - number)) * loss for number, loss in enumerate(each.unbind()))  # pyright: ignore[reportReturnType]


def full_flow(flows: list[Tensor]) -> Tensor:
    """In pixels, (batch, 2, height, width), half precision."""
    flow = F.interpolate(flows[-1].float(), scale_factor=8.0, mode="bilinear", align_corners=False)
    return to_host((8 * flow).half())


def make(rng: random.Random, training: bool) -> Job:
    """Three or four iterations, width 16 or 24, frames of 96 or 128 pixels."""
    side, width, hidden = rng.choice([(96, 24, 64), (128, 16, 48), (96, 16, 96), (64, 24, 96)])
    cells = side // 8
    return make_job(
        "optical_flow",
        OpticalFlow(side, width, hidden, rng.choice([3, 4])),
        training,
        choose_batch_size(rng, at_most=7),
        inputs=lambda draw: (draw.image(3, side, side), draw.image(3, side, side)),
        targets=lambda draw: (draw.noise(2, cells, cells),),
        loss=sequence_loss,
        postprocess=full_flow,
    )


FAMILY = Family("optical_flow", "motion", make)
