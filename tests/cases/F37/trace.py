"""Steps of 31.5 ms (for 31.5 s of the report), 11.1 of which the loader is waited for."""

from tests.builders import TraceBuilder
from torchtraceap.analyzer.trace.model import Trace


def build() -> Trace:
    b = TraceBuilder()
    with b.frame("source.py(28): train"):
        for number in range(6):
            with b.step(number):
                with (
                    b.frame("torch/utils/data/dataloader.py(720): __next__"),
                    b.annotation("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"),
                ):
                    b.host(11_100)
                with b.frame("nn.Module: TSN_0"), b.frame("source.py(23): forward"):
                    for _ in range(4):
                        b.leaf("aten::conv2d", us=30, kernel="implicit_gemm", kernel_us=2000)
                b.call("torch/optim/optimizer.py(1023): zero_grad", us=20)
                with b.frame("<built-in method run_backward of torch._C._EngineBase object at 0x7f2c8e8c7000>"):
                    for _ in range(4):
                        b.leaf("aten::convolution_backward", us=30, kernel="dgrad", kernel_us=3000)
                b.synchronize()
    return b.build()
