"""Two epochs of 15 steps on a GPU; starting eight workers by fork takes 1.5 ms each."""

from tests.builders import TraceBuilder
from torchtraceap.analyzer.trace.model import Trace

LOADER = "torch/utils/data/dataloader.py"
WORKERS = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"


def build() -> Trace:
    b = TraceBuilder()
    with b.frame("source.py(21): fit"):
        for number in range(30):
            with b.step(number):
                if number % 15 == 0:
                    with b.frame(f"{LOADER}(492): __iter__"), b.frame(f"{LOADER}(433): _get_iterator"):
                        for _ in range(8):
                            with b.frame("multiprocessing/process.py(110): start"):
                                b.call("multiprocessing/popen_fork.py(62): _launch", us=1500)
                with b.annotation(WORKERS):
                    b.host(9000 if number % 15 == 0 else 200)
                with b.frame("nn.Module: Interpolator_0"):
                    for _ in range(2):
                        b.leaf("aten::linear", us=40, kernel="sgemm", kernel_us=30_000)
                with b.frame("torch/_tensor.py(566): backward"):
                    b.leaf("aten::mm", us=40, kernel="sgemm", kernel_us=30_000)
                with b.annotation("Optimizer.step#Adam.step"):
                    b.leaf("aten::_fused_adam_", us=40, kernel="multi_tensor_apply_kernel", kernel_us=300)
                b.synchronize()
                if number % 15 == 14:
                    with b.annotation(WORKERS), b.frame(f"{LOADER}(1468): _next_data"):
                        b.call(f"{LOADER}(1606): _shutdown_workers", us=1000)
    return b.build()
