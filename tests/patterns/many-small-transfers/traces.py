from tests.patterns.scenes import TraceBuilder, layer, on_device

MATCH = "matcher.py(30): match"


def _network(b: TraceBuilder) -> None:
    for _ in range(4):
        layer(b, "aten::conv2d", "conv", kernel_us=300)


def _to(b: TraceBuilder, kind: str, size_bytes: int) -> None:
    with b.op("aten::to", us=4), b.op("aten::_to_copy", us=4), b.op("aten::copy_", us=3):
        b.copy(kind, us=2, size_bytes=size_bytes)


def positive_costs_to_the_host():
    """Forty-eight small cost matrices, each copied and waited for alone."""

    def body(b: TraceBuilder) -> None:
        _network(b)
        with b.frame(MATCH, us=40):
            for _ in range(48):
                with b.frame("<built-in method cpu of Tensor object at 0x7f00>", us=1):
                    _to(b, "DtoH (Device -> Pageable)", 8_000)
                b.host(20)
                layer(b, "aten::add", "add", us=8, kernel_us=2)

    return on_device(body)


def positive_targets_to_the_device():
    """Boxes and labels of sixteen images, moved one by one."""

    def body(b: TraceBuilder) -> None:
        with b.frame("train.py(20): to_device", us=40):
            for _ in range(32):
                with b.frame("<built-in method to of Tensor object at 0x7f00>", us=1):
                    _to(b, "HtoD (Pageable -> Device)", 400)
                b.host(5)
        _network(b)

    return on_device(body)


def negative_one_copy():
    """All of it at once."""

    def body(b: TraceBuilder) -> None:
        _network(b)
        with b.frame(MATCH, us=40):
            _to(b, "DtoH (Device -> Pageable)", 48 * 8_000)

    return on_device(body)


def negative_few():
    """A near miss: image, label and mask."""

    def body(b: TraceBuilder) -> None:
        with b.frame("train.py(20): to_device", us=10):
            for _ in range(3):
                _to(b, "HtoD (Pageable -> Device)", 4_000)
        _network(b)

    return on_device(body)


def negative_large():
    """A near miss: as many copies, but of megabytes: their bytes take the time."""

    def body(b: TraceBuilder) -> None:
        with b.frame("train.py(20): to_device", us=10):
            for _ in range(16):
                _to(b, "HtoD (Pinned -> Device)", 4 << 20)
        _network(b)

    return on_device(body)
