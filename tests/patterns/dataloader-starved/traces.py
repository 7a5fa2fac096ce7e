import time

import pytest

from tests.patterns.recorded import record
from tests.patterns.scenes import TraceBuilder, on_cpu, on_device
from torchtraceap.analyzer.trace.model import Trace

WORKERS = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"


def _train(b: TraceBuilder, wait_us: float) -> None:
    with b.annotation(WORKERS):
        b.host(wait_us)
    for _ in range(5):
        b.leaf("aten::conv2d", us=20, kernel="implicit_gemm", kernel_us=2000)


def positive_device_waits_for_workers() -> Trace:
    return on_device(lambda b: _train(b, 15_000))


def positive_every_fourth_batch_is_late() -> Trace:
    """Four workers finish together: one long wait, then three batches that are ready."""
    waits = iter([40_000, 100, 100, 100] * 3)
    return on_device(lambda b: _train(b, next(waits)), steps=12)


def positive_only_python_frames() -> Trace:
    def body(b: TraceBuilder) -> None:
        with (
            b.frame("torch/utils/data/dataloader.py(720): __next__"),
            b.frame("torch/utils/data/dataloader.py(1468): _next_data"),
        ):
            b.call("torch/utils/data/dataloader.py(1433): _get_data", us=9000)
        b.leaf("aten::conv2d", us=10_000)

    return on_cpu(body)


class _Slow:
    """Samples that take 4 ms each."""

    def __len__(self) -> int:
        return 64

    def __getitem__(self, i: int) -> int:
        time.sleep(0.004)
        return i


def positive_recorded() -> Trace:
    pytest.importorskip("torch")
    from torch.utils.data import DataLoader

    batches = iter(DataLoader(_Slow(), batch_size=4, num_workers=1))  # pyright: ignore[reportArgumentType]
    return record(lambda: next(batches).float().mean())


def negative_batches_are_ready() -> Trace:
    return on_device(lambda b: _train(b, 100))


def negative_one_long_wait() -> Trace:
    waits = iter([60_000] + [100] * 11)
    return on_device(lambda b: _train(b, next(waits)), steps=12)


def negative_first_batches_of_epochs() -> Trace:
    """The workers have to start; what follows is ready."""
    numbers = iter(range(12))

    def body(b: TraceBuilder) -> None:
        is_first = next(numbers) % 4 == 0
        if is_first:
            b.call("torch/utils/data/dataloader.py(433): _get_iterator", us=2000)
        _train(b, 60_000 if is_first else 100)

    return on_device(body, steps=12)


def negative_the_device_is_busy_meanwhile() -> Trace:
    b = TraceBuilder()
    with b.frame("train.py(40): main"):
        for number in range(5):
            with b.step(number, us=20):
                _train(b, 3000)
    return b.build()
