from tests.patterns.scenes import TraceBuilder, layer, on_cpu, on_device

POST = "detector.py(60): postprocess"


def _network(b: TraceBuilder) -> None:
    for _ in range(4):
        layer(b, "aten::conv2d", "conv", kernel_us=400)


def _suppress(b: TraceBuilder, boxes: int, *, us: float = 20) -> None:
    with b.op("torchvision::nms", us=us, shapes=[(boxes, 4), (boxes,), ()]):
        b.kernel("nms_kernel_impl", us=6)
        b.copy("DtoH (Device -> Pageable)", us=2, size_bytes=8 * boxes)


def _class_round(b: TraceBuilder, boxes: int = 30) -> None:
    layer(b, "aten::eq", "eq", us=8, kernel_us=2, shapes=[(900,), ()])
    with b.op("aten::nonzero", us=10):
        b.kernel("nonzero", us=3)
        b.synchronize("cudaStreamSynchronize", stream=7)
    layer(b, "aten::index", "index", us=10, kernel_us=2)
    with b.frame("torchvision/ops/boxes.py(15): nms", us=4):
        _suppress(b, boxes)
    layer(b, "aten::index", "index", us=10, kernel_us=2)


def positive_class_by_class():
    """Twenty classes, thirty boxes each."""

    def body(b: TraceBuilder) -> None:
        _network(b)
        with b.frame(POST, us=20):
            for _ in range(20):
                _class_round(b)

    return on_device(body)


def positive_cpu_image_by_image():
    """On the CPU: a function for each of eight images, which suppresses once."""

    def body(b: TraceBuilder) -> None:
        for _ in range(4):
            b.leaf("aten::conv2d", us=700)
        with b.frame(POST, us=10):
            for _ in range(8):
                with b.frame("detector.py(40): one_image", us=15):
                    b.leaf("aten::index", us=12)
                    b.leaf("torchvision::nms", us=30, shapes=[(60, 4), (60,), ()])

    return on_cpu(body)


def negative_batched():
    """One suppression of all boxes."""

    def body(b: TraceBuilder) -> None:
        _network(b)
        with b.frame(POST, us=20):
            _suppress(b, 600)

    return on_device(body)


def negative_many_boxes():
    """A near miss: so many boxes that batched_nms would loop over the classes itself."""

    def body(b: TraceBuilder) -> None:
        _network(b)
        with b.frame(POST, us=20):
            for _ in range(20):
                _class_round(b, boxes=20_000)

    return on_device(body)


def negative_inside_torchvision():
    """A near miss: the loop is that of batched_nms."""

    def body(b: TraceBuilder) -> None:
        _network(b)
        with b.frame("torchvision/ops/boxes.py(110): _batched_nms_vanilla", us=20):
            for _ in range(20):
                _class_round(b)

    return on_device(body)
