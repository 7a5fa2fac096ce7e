import pytest

from tests.patterns.recorded import record
from tests.patterns.scenes import TraceBuilder, layer, on_cpu, on_device

LOSS = "losses.py(20): detection_loss"


def _network(b: TraceBuilder) -> None:
    for _ in range(4):
        layer(b, "aten::conv2d", "conv", kernel_us=300)


def positive_loss_per_image_on_device():
    """Sixteen images, five small kernels each; the device waits for the launches."""

    def body(b: TraceBuilder) -> None:
        _network(b)
        b.synchronize()
        with b.frame(LOSS, us=20):
            for _ in range(16):
                b.leaf("aten::select", us=3, shapes=[(16, 100, 4), (), ()])
                for name in ("aten::sub", "aten::abs", "aten::mul", "aten::sum", "aten::add"):
                    layer(b, name, "elementwise", us=9, kernel_us=3)

    return on_device(body)


def positive_one_crop_at_a_time():
    """One call of the head for each crop, the same module every time."""

    def body(b: TraceBuilder) -> None:
        _network(b)
        with b.frame("detector.py(50): embed", us=20):
            for _ in range(20):
                with b.frame("nn.Module: Head_0", us=20):
                    layer(b, "aten::linear", "gemm", us=25, kernel_us=5)
                    layer(b, "aten::relu", "relu", us=12, kernel_us=2)

    return on_device(body)


def positive_recorded():
    """Boxes encoded one by one on the CPU, really run, forward and backward."""
    torch = pytest.importorskip("torch")
    boxes = torch.rand(32, 4, requires_grad=True)

    def encode(boxes):
        encoded = []
        for box in boxes:
            width, height = box[2] - box[0], box[3] - box[1]
            encoded.append(torch.stack([box[0] + width / 2, box[1] + height / 2, width, height]))
        return torch.stack(encoded)

    def step():
        encode(boxes).sum().backward()

    return record(step)


def positive_operators_read_numbers():
    """Samples standardised one by one: the backward pass of `std` reads a number for itself, Python reads none."""
    torch = pytest.importorskip("torch")
    maps = torch.rand(32, 3, 8, 8, requires_grad=True)

    def standardised(maps):
        done = []
        for sample in maps:
            centred = sample - sample.mean()
            done.append(centred / (centred.std() + 1e-5))
        return torch.stack(done)

    def step():
        standardised(maps).square().sum().backward()

    return record(step)


def negative_whole_batch():
    """The same operators once, on the whole batch."""

    def body(b: TraceBuilder) -> None:
        _network(b)
        with b.frame(LOSS, us=20):
            for name in ("aten::sub", "aten::abs", "aten::mul", "aten::sum", "aten::add"):
                layer(b, name, "elementwise", us=9, kernel_us=12)

    return on_device(body)


def negative_heavy_rounds():
    """A near miss: each round is heavy work that the device is busy with; a batch of them would take as long."""

    def body(b: TraceBuilder) -> None:
        with b.frame("detector.py(50): embed", us=20):
            for _ in range(8):
                with b.frame("nn.Module: Backbone_0", us=20):
                    for _ in range(3):
                        layer(b, "aten::conv2d", "conv", us=20, kernel_us=900)

    return on_device(body)


def negative_layers():
    """A near miss: the model's own layers, each another module."""

    def body(b: TraceBuilder) -> None:
        with b.frame("vit.py(80): forward", us=10):
            for number in range(12):
                with b.frame(f"nn.Module: Block_{number}", us=10):
                    b.leaf("aten::linear", us=300)
                    b.leaf("aten::gelu", us=60)

    return on_cpu(body)


def negative_two_levels():
    """A near miss: a loop over two feature levels."""

    def body(b: TraceBuilder) -> None:
        _network(b)
        with b.frame(LOSS, us=10):
            for _ in range(2):
                layer(b, "aten::interpolate", "upsample", us=20, kernel_us=10)
                layer(b, "aten::add", "add", us=9, kernel_us=3)

    return on_device(body)
