import pytest

from tests.patterns.recorded import record
from tests.patterns.scenes import TraceBuilder, layer, on_device

SAMPLE = "deform_attn.py(12): multi_scale_sample"
LEVELS = ((64, 64), (32, 32), (16, 16), (8, 8))


def _copy(b: TraceBuilder, shape, us: float) -> None:
    with b.op("aten::contiguous", us=4, shapes=[shape]), b.op("aten::clone", us=4, shapes=[shape]):
        layer(b, "aten::copy_", "elementwise_kernel_copy", us=8, kernel_us=us, shapes=[shape, shape])


def _level(b: TraceBuilder, height: int, width: int, copies: bool) -> None:
    shape = (16, 32, height, width)
    b.leaf("aten::transpose", us=4, shapes=[(2, height * width, 8, 32), (), ()])
    if copies:
        _copy(b, shape, 60)
        _copy(b, (16, 900, 4, 2), 40)
    with b.op("aten::grid_sampler", us=6, shapes=[shape, (16, 900, 4, 2)]):
        layer(b, "aten::grid_sampler_2d", "grid_sampler_2d_kernel", us=10, kernel_us=90, shapes=[shape])


def _attention(b: TraceBuilder, levels, copies: bool = True) -> None:
    for _ in range(3):
        layer(b, "aten::linear", "gemm", us=20, kernel_us=150)
    with b.frame(SAMPLE, us=10):
        for height, width in levels:
            _level(b, height, width, copies)


def positive_four_levels():
    """Six layers, each copying values and points for four levels."""

    def body(b: TraceBuilder) -> None:
        for _ in range(6):
            _attention(b, LEVELS)

    return on_device(body)


def positive_recorded():
    """Three levels on the CPU, really run."""
    torch = pytest.importorskip("torch")
    values = [torch.rand(2, size * size, 4, 16) for size in (32, 16, 8)]
    points = torch.rand(2, 100, 4, 4, 2)

    def sample(values, points):
        out = []
        for value in values:
            size = int(value.shape[1] ** 0.5)
            maps = value.permute(0, 2, 3, 1).contiguous().view(8, 16, size, size)
            grid = points.permute(0, 2, 1, 3, 4).contiguous().view(8, 100, 4, 2)
            out.append(torch.nn.functional.grid_sample(maps, grid, align_corners=False))
        return torch.stack(out, -2)

    return record(lambda: sample(values, points))


def negative_views():
    """The same without copies."""

    def body(b: TraceBuilder) -> None:
        for _ in range(6):
            _attention(b, LEVELS, copies=False)

    return on_device(body)


def negative_one_level():
    """A near miss: a spatial transformer samples once."""

    def body(b: TraceBuilder) -> None:
        _attention(b, LEVELS[:1])

    return on_device(body)


def negative_contiguous_already():
    """A near miss: `contiguous` of a dense tensor copies nothing."""

    def body(b: TraceBuilder) -> None:
        for _ in range(3):
            layer(b, "aten::linear", "gemm", us=20, kernel_us=150)
        with b.frame(SAMPLE, us=10):
            for height, width in LEVELS:
                b.leaf("aten::contiguous", us=2, shapes=[(16, 32, height, width)])
                _level(b, height, width, copies=False)

    return on_device(body)
