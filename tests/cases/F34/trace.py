"""Steps of 23 ms (a tenth of the report's), in which the workers are waited for."""

from tests.builders import TraceBuilder
from torchtraceap.analyzer.trace.model import Trace


def build() -> Trace:
    b = TraceBuilder()
    with b.frame("source.py(30): train"):
        for number in range(6):
            with b.step(number):
                with (
                    b.frame("torch/utils/data/dataloader.py(720): __next__"),
                    b.annotation("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"),
                ):
                    b.host(9000)
                with b.frame("nn.Module: Detector_0"):
                    for _ in range(4):
                        b.leaf("aten::conv2d", us=30, kernel="implicit_gemm", kernel_us=1200)
                b.call("torch/optim/optimizer.py(1023): zero_grad", us=20)
                with b.frame("<built-in method run_backward of torch._C._EngineBase object at 0x7f2c8e8c7000>"):
                    for _ in range(4):
                        b.leaf("aten::convolution_backward", us=30, kernel="dgrad", kernel_us=2300)
                b.synchronize()
    return b.build()
