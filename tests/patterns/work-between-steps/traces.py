import io

import pytest

from tests.patterns.recorded import record
from tests.patterns.scenes import TraceBuilder, on_cpu, on_device
from torchtraceap.analyzer.trace.model import Trace


def _train(b: TraceBuilder) -> None:
    for _ in range(5):
        b.leaf("aten::conv2d", us=20, kernel="implicit_gemm", kernel_us=1000)


def positive_images_are_logged_each_step() -> Trace:
    def body(b: TraceBuilder) -> None:
        _train(b)
        with b.frame("torch/utils/tensorboard/writer.py(610): add_images", us=2500):
            b.item()

    return on_device(body)


def positive_checkpoint_each_step() -> Trace:
    def body(b: TraceBuilder) -> None:
        b.leaf("aten::conv2d", us=20_000)
        with b.frame("utils.py(8): keep"):
            b.call("torch/serialization.py(944): save", us=15_000)

    return on_cpu(body)


def positive_recorded_save() -> Trace:
    torch = pytest.importorskip("torch")
    net = torch.nn.Linear(64, 64)
    x = torch.rand(8, 64)

    def step() -> None:
        net(x)
        torch.save(net.state_dict(), io.BytesIO())

    return record(step)


def negative_one_image_in_many_steps() -> Trace:
    numbers = iter(range(8))

    def body(b: TraceBuilder) -> None:
        _train(b)
        if next(numbers) % 4 == 0:
            b.call("torch/utils/tensorboard/writer.py(610): add_images", us=5000)

    return on_device(body, steps=8)


def negative_scalar_that_costs_nothing() -> Trace:
    def body(b: TraceBuilder) -> None:
        _train(b)
        b.call("wandb/sdk/wandb_run.py(1800): log", us=30)

    return on_device(body)


def negative_images_are_made_by_the_data_set() -> Trace:
    def body(b: TraceBuilder) -> None:
        with b.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"):
            b.call("imageio/v3.py(30): imread", us=4000)
        _train(b)

    return on_device(body)


def negative_device_is_busy_meanwhile() -> Trace:
    b = TraceBuilder()
    with b.frame("train.py(40): main"):
        for number in range(5):
            with b.step(number, us=20):
                _train(b)
                b.call("wandb/sdk/wandb_run.py(1800): log", us=2000)
    return b.build()
