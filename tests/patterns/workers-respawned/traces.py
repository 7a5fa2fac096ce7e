import pytest

from tests.patterns.recorded import record
from tests.patterns.scenes import TraceBuilder
from torchtraceap.analyzer.trace.model import Trace

WORKERS = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
LOADER = "torch/utils/data/dataloader.py"


def epoch_start(
    b: TraceBuilder, start_us: float, *, workers: int = 4, popen: str = "popen_fork", ends: bool = True
) -> None:
    """What a loop over a loader with workers does between two epochs."""
    if ends:
        with b.annotation(WORKERS), b.frame(f"{LOADER}(1468): _next_data"):
            b.call(f"{LOADER}(1606): _shutdown_workers", us=start_us / 4)
    with b.frame(f"{LOADER}(492): __iter__"), b.frame(f"{LOADER}(433): _get_iterator"):
        for _ in range(workers):
            with b.frame("multiprocessing/process.py(110): start"):
                b.call(f"multiprocessing/{popen}.py(15): __init__", us=start_us / workers)


def _epochs(
    b: TraceBuilder, lengths: list[int], start_us: float, first_us: float = 0, popen: str = "popen_fork"
) -> Trace:
    """Epochs of so many steps of 20 ms."""
    number = 0
    with b.frame("train.py(12): main"):
        for length in lengths:
            for batch in range(length):
                with b.step(number, us=20):
                    if batch == 0:
                        epoch_start(b, start_us, popen=popen, ends=number > 0)
                    with b.annotation(WORKERS):
                        b.host(first_us if first_us and batch == 0 else 300)
                    b.leaf("aten::conv2d", us=20_000)
                number += 1
    return b.build()


def positive_forked_four_times_in_short_epochs() -> Trace:
    return _epochs(TraceBuilder(devices=()), [3, 3, 3, 3], 60_000)


def positive_spawned_workers_import_everything_again() -> Trace:
    """Starting them is quick for the main process; the first batch waits until they have imported torch."""
    return _epochs(TraceBuilder(devices=()), [6, 6], 8000, first_us=900_000, popen="popen_spawn_posix")


def positive_recorded() -> Trace:
    torch = pytest.importorskip("torch")
    from torch.utils.data import DataLoader, TensorDataset

    data = TensorDataset(torch.rand(8, 16), torch.randint(4, (8,)))
    loader = DataLoader(data, batch_size=8, num_workers=1)
    net = torch.nn.Linear(16, 4)

    def step() -> None:
        for x, _ in loader:
            net(x).sum().backward()

    return record(step)


def negative_recorded_with_kept_workers() -> Trace:
    torch = pytest.importorskip("torch")
    from torch.utils.data import DataLoader, TensorDataset

    data = TensorDataset(torch.rand(8, 16), torch.randint(4, (8,)))
    loader = DataLoader(data, batch_size=8, num_workers=1, persistent_workers=True)
    net = torch.nn.Linear(16, 4)

    def step() -> None:
        for x, _ in loader:
            net(x).sum().backward()

    return record(step)


def negative_first_epoch_only() -> Trace:
    return _epochs(TraceBuilder(devices=()), [8], 60_000)


def negative_start_is_small_beside_the_epoch() -> Trace:
    return _epochs(TraceBuilder(devices=()), [12, 12], 1500)
