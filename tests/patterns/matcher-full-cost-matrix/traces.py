from tests.patterns.scenes import TraceBuilder, layer, on_cpu, on_device

MATCH = "matcher.py(30): forward"
SOLVE = "<built-in function linear_sum_assignment>"


def _network(b: TraceBuilder) -> None:
    for _ in range(6):
        layer(b, "aten::conv2d", "conv", kernel_us=900)


def _solve(b: TraceBuilder, images: int) -> None:
    with b.frame("matcher.py(60): <listcomp>", us=2):
        for _ in range(images):
            b.call(SOLVE, us=60)


def positive_dense_scenes():
    """Six decoder layers, eight images with a hundred objects each, 900 predictions."""

    def body(b: TraceBuilder) -> None:
        _network(b)
        for _ in range(6):
            with b.frame(MATCH, us=10):
                layer(b, "aten::index", "gather", us=12, kernel_us=120, shapes=[(7200, 91), (800,)])
                layer(b, "aten::cdist", "cdist", us=15, kernel_us=140, shapes=[(7200, 4), (800, 4)])
                layer(b, "aten::mul", "mul", us=8, kernel_us=90, shapes=[(7200, 800)])
                layer(b, "aten::add", "add", us=8, kernel_us=110, shapes=[(7200, 800), (7200, 800)])
                with b.op("aten::to", us=5, shapes=[(8, 900, 800)]):
                    b.copy("DtoH (Device -> Pageable)", us=4000, size_bytes=7200 * 800 * 4)
                _solve(b, 8)

    return on_device(body)


def positive_on_the_cpu():
    """Without a device the operators themselves cost too much."""

    def body(b: TraceBuilder) -> None:
        for _ in range(4):
            b.leaf("aten::conv2d", us=4000)
        with b.frame(MATCH, us=10):
            b.leaf("aten::cdist", us=3000, shapes=[(1600, 4), (400, 4)])
            b.leaf("aten::mul", us=900, shapes=[(1600, 400)])
            b.leaf("aten::add", us=1200, shapes=[(1600, 400), (1600, 400)])
            b.leaf("aten::to", us=1, shapes=[(4, 400, 400)])
            _solve(b, 4)

    return on_cpu(body)


def negative_image_by_image():
    """Each image costs its own targets."""

    def body(b: TraceBuilder) -> None:
        _network(b)
        with b.frame(MATCH, us=10):
            for _ in range(8):
                layer(b, "aten::cdist", "cdist", us=15, kernel_us=20, shapes=[(900, 4), (100, 4)])
                layer(b, "aten::add", "add", us=8, kernel_us=10, shapes=[(900, 100), (900, 100)])
            with b.op("aten::to", us=5, shapes=[(900, 800)]):
                b.copy("DtoH (Device -> Pageable)", us=500, size_bytes=900 * 800 * 4)
            _solve(b, 8)

    return on_device(body)


def negative_few_objects():
    """A near miss: two images with three objects each; the matrix is small."""

    def body(b: TraceBuilder) -> None:
        _network(b)
        with b.frame(MATCH, us=10):
            layer(b, "aten::cdist", "cdist", us=15, kernel_us=4, shapes=[(200, 4), (6, 4)])
            with b.op("aten::to", us=5, shapes=[(2, 100, 6)]):
                b.copy("DtoH (Device -> Pageable)", us=4, size_bytes=200 * 6 * 4)
            _solve(b, 2)

    return on_device(body)


def negative_one_image():
    """A near miss: with one image the whole matrix is that image's."""

    def body(b: TraceBuilder) -> None:
        _network(b)
        with b.frame(MATCH, us=10):
            layer(b, "aten::cdist", "cdist", us=15, kernel_us=140, shapes=[(900, 4), (800, 4)])
            with b.op("aten::to", us=5, shapes=[(1, 900, 800)]):
                b.copy("DtoH (Device -> Pageable)", us=500, size_bytes=900 * 800 * 4)
            _solve(b, 1)

    return on_device(body)
