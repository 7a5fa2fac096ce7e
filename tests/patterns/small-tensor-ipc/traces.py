import pytest

from tests.patterns.recorded import record
from tests.patterns.scenes import TraceBuilder, on_cpu, on_device
from torchtraceap.analyzer.trace.model import Trace

WORKERS = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
REBUILD = "torch/multiprocessing/reductions.py(537): rebuild_storage_fd"


def _train(b: TraceBuilder, tensors: int, each_us: float = 150) -> None:
    with b.annotation(WORKERS), b.frame("torch/utils/data/dataloader.py(1278): _try_get_data"):
        for _ in range(tensors):
            b.call(REBUILD, us=each_us)
    b.leaf("aten::conv2d", us=20, kernel="implicit_gemm", kernel_us=20_000)


def positive_seven_tensors_for_each_of_sixteen_samples() -> Trace:
    return on_device(lambda b: _train(b, 113))


def positive_a_thread_pins_them() -> Trace:
    """The main thread only waits; the other one maps tensors all the time."""

    def body(b: TraceBuilder) -> None:
        with b.thread(9):
            for _ in range(113):
                b.call(REBUILD, us=150)
        with b.annotation(WORKERS):
            b.host(14_000)
        b.leaf("aten::conv2d", us=20, kernel="implicit_gemm", kernel_us=20_000)

    return on_device(body)


def positive_without_stacks() -> Trace:
    def body(b: TraceBuilder) -> None:
        with b.annotation(WORKERS):
            b.host(14_000)
        b.leaf("aten::conv2d", us=20_000)

    return on_cpu(body, frames=())


class _Targets:
    """A data set whose samples hold six small tensors each."""

    def __len__(self) -> int:
        return 64

    def __getitem__(self, i: int) -> list:
        import torch

        return [torch.full((4,), float(i)) for _ in range(6)]


def _as_they_are(samples: list) -> list:
    return samples


def positive_recorded() -> Trace:
    pytest.importorskip("torch")
    from torch.utils.data import DataLoader

    loader = DataLoader(_Targets(), batch_size=8, num_workers=1, collate_fn=_as_they_are)  # pyright: ignore
    batches = iter(loader)
    return record(lambda: next(batches)[0][0].sum())


def negative_images_and_labels() -> Trace:
    return on_device(lambda b: _train(b, 2, each_us=1500))


def negative_small_share_of_the_step() -> Trace:
    return on_device(lambda b: _train(b, 20, each_us=10))


def negative_batches_are_ready() -> Trace:
    def body(b: TraceBuilder) -> None:
        with b.annotation(WORKERS):
            b.host(80)
        b.leaf("aten::conv2d", us=20_000)

    return on_cpu(body, frames=())
