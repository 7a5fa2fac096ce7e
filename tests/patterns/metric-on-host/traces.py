import pytest

from tests.patterns.recorded import record
from tests.patterns.scenes import TraceBuilder, layer, on_device

UPDATE = "metrics.py(10): update"
NUMPY_SUM = "numpy/_core/fromnumeric.py(2304): sum"


def _network(b: TraceBuilder) -> None:
    for _ in range(5):
        layer(b, "aten::conv2d", "conv", kernel_us=600)


def _labels_to_host(b: TraceBuilder) -> None:
    with b.frame("<built-in method cpu of Tensor object at 0x7f00>", us=2), b.op("aten::to", shapes=[(4, 64, 64)]):
        b.copy("DtoH (Device -> Pageable)", us=20, size_bytes=4 * 64 * 64 * 8)
    with b.frame("<built-in method numpy of Tensor object at 0x7f00>", us=2):
        b.leaf("aten::detach", us=2, shapes=[(4, 64, 64)])


def positive_numpy_class_by_class():
    """A function takes the labels to numpy and compares them class by class."""

    def body(b: TraceBuilder) -> None:
        _network(b)
        with b.frame(UPDATE, us=800):
            _labels_to_host(b)
            for _ in range(64):
                b.call(NUMPY_SUM, us=20)

    return on_device(body)


def positive_sklearn_in_the_loop():
    """scikit-learn's confusion matrix, called from the training loop itself."""

    def body(b: TraceBuilder) -> None:
        _network(b)
        _labels_to_host(b)
        with b.frame("sklearn/utils/_param_validation.py(191): wrapper", us=20):
            b.call("sklearn/metrics/_classification.py(250): confusion_matrix", us=2500)

    return on_device(body)


def positive_computed_each_step():
    """A metric object that updates and computes in every step."""

    def body(b: TraceBuilder) -> None:
        _network(b)
        with b.frame("torchmetrics/metric.py(300): forward", us=20):
            b.call("torchmetrics/detection/mean_ap.py(480): update", us=150)
            b.call("torchmetrics/detection/mean_ap.py(520): compute", us=3000)

    return on_device(body)


def positive_recorded():
    """A network's predictions compared class by class in numpy, really run."""
    torch, numpy = pytest.importorskip("torch"), pytest.importorskip("numpy")
    net = torch.nn.Conv2d(3, 8, 1)
    images, masks = torch.rand(2, 3, 64, 64), torch.randint(0, 8, (2, 64, 64))
    matrix = numpy.zeros((8, 8), dtype=numpy.int64)

    def update(logits, target):
        pred, true = logits.argmax(1).cpu().numpy().ravel(), target.cpu().numpy().ravel()
        for i in range(8):
            for j in range(8):
                matrix[i, j] += numpy.sum((true == i) & (pred == j))

    def step():
        with torch.no_grad():
            update(net(images), masks)

    return record(step)


def negative_counted_on_the_device():
    """One `bincount`, nothing taken to the host."""

    def body(b: TraceBuilder) -> None:
        _network(b)
        with b.frame(UPDATE, us=20):
            layer(b, "aten::argmax", "reduce", kernel_us=20)
            layer(b, "aten::bincount", "histogram", kernel_us=15)

    return on_device(body)


def negative_numpy_before_the_network():
    """A near miss: numpy prepares the input, and no tensor has gone to the host in the step yet."""

    def body(b: TraceBuilder) -> None:
        with b.frame("predict.py(30): prepare", us=600):
            for _ in range(8):
                b.call(NUMPY_SUM, us=60)
        _network(b)
        with b.frame("predict.py(60): result", us=5):
            b.call("<built-in method tolist of Tensor object at 0x7f00>", us=4)

    return on_device(body)


def negative_every_few_steps():
    """A near miss: it runs in one step of eight."""
    runs = iter(range(8))

    def body(b: TraceBuilder) -> None:
        _network(b)
        if next(runs) == 4:
            with b.frame(UPDATE, us=800):
                _labels_to_host(b)
                b.call(NUMPY_SUM, us=1500)

    return on_device(body, steps=8)
