"""Steps of 40 ms (for 40 s of the report), 38 of which the loader is waited for."""

from tests.builders import TraceBuilder
from torchtraceap.analyzer.trace.model import Trace


def build() -> Trace:
    b = TraceBuilder()
    with b.frame("source.py(16): train"):
        for number in range(6):
            with b.step(number):
                with (
                    b.frame("torch/utils/data/dataloader.py(720): __next__"),
                    b.annotation("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"),
                ):
                    b.host(38_000)
                with b.frame("nn.Module: VindLU_0"):
                    for _ in range(4):
                        b.leaf("aten::linear", us=30, kernel="ampere_sgemm", kernel_us=150)
                b.call("torch/optim/optimizer.py(1023): zero_grad", us=20)
                with b.frame("<built-in method run_backward of torch._C._EngineBase object at 0x7f2c8e8c7000>"):
                    for _ in range(4):
                        b.leaf("aten::mm", us=30, kernel="ampere_sgemm", kernel_us=300)
                b.synchronize()
    return b.build()
