"""slow-grouped-conv: grouped convolutions of a width for which libraries only have generic kernels."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from torch import Tensor, nn

from ..fault import Control, Fault
from ..job import Job
from ..marks import spoiled
from ..surgery import Place, choose, find, wrap_forward

SLUG = "slow-grouped-conv"
_SLOW_WIDTHS = (3, 4, 6, 12)


def apply(job: Job, rng: random.Random) -> bool:
    """Some 3x3 convolutions become grouped, with groups of 3 to 12 channels."""
    widths = rng.sample(_SLOW_WIDTHS, len(_SLOW_WIDTHS))
    dense = find(job.model, nn.Conv2d, lambda conv: bool(_groups(conv, widths)))
    for place in choose(dense, rng):
        grouped = _regroup(place, _groups(place.part, widths))
        wrap_forward(grouped, _marked)
    if dense:
        job.settings[SLUG] = "generic kernels"
    return bool(dense)


def _groups(conv: nn.Conv2d, widths: Sequence[int]) -> int:
    """Into how many groups a dense convolution of several pixels can be parted; 0 if into none."""
    if conv.groups > 1 or max(conv.kernel_size) < 3 or type(conv) is not nn.Conv2d:
        return 0
    for width in widths:
        groups = conv.in_channels // width
        if groups > 1 and conv.in_channels % width == 0 and conv.out_channels % groups == 0:
            return groups
    return 0


def _regroup(place: Place[nn.Conv2d], groups: int) -> nn.Conv2d:
    conv = place.part
    kernel, stride, dilation = (_pair(sizes) for sizes in (conv.kernel_size, conv.stride, conv.dilation))
    padding = conv.padding if isinstance(conv.padding, str) else _pair(conv.padding)
    bias = conv.bias is not None
    other = nn.Conv2d(conv.in_channels, conv.out_channels, kernel, stride, padding, dilation, groups, bias)
    place.replace(other)
    return other


def _pair(sizes: tuple[int, ...]) -> tuple[int, int]:
    return sizes[0], sizes[1]


def _marked(original: Callable, x: Tensor) -> Tensor:
    with spoiled(SLUG):
        return original(x)


def apply_control(job: Job, rng: random.Random) -> bool:
    """One convolution becomes grouped, with groups of 16 channels, for which there are good kernels."""
    wide = find(job.model, nn.Conv2d, lambda conv: bool(_groups(conv, [16])))
    if wide:
        place = rng.choice(wide)
        _regroup(place, _groups(place.part, [16]))
    return bool(wide)


FAULT = Fault(SLUG, apply)
CONTROL = Control("groups of 16 channels", apply_control)
