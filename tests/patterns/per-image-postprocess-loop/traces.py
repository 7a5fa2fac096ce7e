import pytest

from tests.patterns.recorded import record
from tests.patterns.scenes import TraceBuilder, layer, on_cpu, on_device

DECODE = "postprocess.py(12): decode"
MAPS = [(64, 48), (), ()]


def _network(b: TraceBuilder) -> None:
    for _ in range(4):
        layer(b, "aten::conv2d", "conv", kernel_us=400)


def _decode_round(b: TraceBuilder) -> None:
    b.leaf("aten::select", us=2, shapes=[(17, 64, 48), (), ()])
    layer(b, "aten::argmax", "reduce", us=8, kernel_us=4, shapes=MAPS)
    layer(b, "aten::gt", "gt", us=6, kernel_us=2, shapes=[(), ()])
    b.item()
    b.host(6)


def positive_peaks_read_one_by_one_on_device():
    """For each of 64 heat maps: argmax, a threshold, `.item()`."""

    def body(b: TraceBuilder) -> None:
        _network(b)
        with b.frame(DECODE, us=20):
            for _ in range(64):
                _decode_round(b)

    return on_device(body)


def positive_one_call_a_person():
    """The loop's body is a function of its own, called once a person."""

    def body(b: TraceBuilder) -> None:
        _network(b)
        with b.frame("predict.py(30): postprocess", us=10):
            for _ in range(24):
                with b.frame("predict.py(8): one_person", us=10):
                    layer(b, "aten::topk", "topk", us=12, kernel_us=6)
                    b.item()

    return on_device(body)


def positive_recorded():
    """Keypoints of 12 people x 17 joints decoded on the CPU, really run."""
    torch = pytest.importorskip("torch")
    net = torch.nn.Conv2d(3, 17, 3, padding=1)
    images = torch.rand(12, 3, 64, 48)

    def decode(heat):
        points = []
        for maps in heat:
            for one in maps:
                peak = int(one.argmax())
                y, x = peak // 48, peak % 48
                points.append((x, y, one[y, x].item()))
        return points

    def step():
        with torch.no_grad():
            return decode(net(images))

    return record(step)


def negative_batched():
    """All maps at once, one copy to the host."""

    def body(b: TraceBuilder) -> None:
        _network(b)
        with b.frame(DECODE, us=20):
            layer(b, "aten::argmax", "reduce", us=8, kernel_us=30, shapes=[(64, 64, 48), (), ()])
            layer(b, "aten::gather", "gather", us=8, kernel_us=10)
            b.copy("DtoH (Device -> Pageable)", us=4, size_bytes=1024)

    return on_device(body)


def negative_two_heads():
    """A near miss: the loop runs over two heads, not over a batch."""

    def body(b: TraceBuilder) -> None:
        _network(b)
        with b.frame(DECODE, us=20):
            for _ in range(2):
                _decode_round(b)

    return on_device(body)


def negative_layers_of_a_model():
    """A near miss: each round runs another layer of the model."""

    def body(b: TraceBuilder) -> None:
        with b.frame("model.py(20): forward", us=10):
            for number in range(12):
                with b.frame(f"nn.Module: Block_{number}", us=10):
                    b.leaf("aten::linear", us=400)
                    b.leaf("aten::item", us=4)

    return on_cpu(body)
