from __future__ import annotations

from tests.patterns.one_process import norms_and_layers, record_training
from tests.patterns.scenes import TraceBuilder, on_device
from torchtraceap.analyzer.trace.model import Trace

WEIGHT = (64, 64)
PARAMETERS = 30


def _step(b: TraceBuilder, *, search_us: float, exchanged: int = PARAMETERS, shapes: bool = True) -> None:
    def sizes(*dims: int) -> tuple:
        return (dims,) if shapes else ()

    with b.frame("nn.Module: DistributedDataParallel_0"), b.annotation("DistributedDataParallel.forward", us=10):
        for _ in range(PARAMETERS):
            b.leaf("aten::linear", us=15, kernel="sgemm", kernel_us=8)
        b.leaf("torch.distributed.ddp.reducer::search_unused_parameters", us=search_us)
        b.leaf("_DDPSink", us=30)
    with b.frame("torch/_tensor.py(570): backward"):
        b.leaf("autograd::engine::evaluate_function: _DDPSinkBackward", us=30)
        for _ in range(PARAMETERS):
            b.leaf("torch::distributed::reducer::mul_out", us=10, kernel="elementwise_kernel", shapes=sizes(*WEIGHT))
        for elements in (exchanged * WEIGHT[0] * WEIGHT[1], PARAMETERS):
            with b.op("c10d::allreduce_", us=20, shapes=((((elements,),),) if shapes else ())):
                b.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs)", us=20, stream=20)


def positive_search_of_a_large_graph() -> Trace:
    return on_device(lambda b: _step(b, search_us=400))


def positive_shapes_not_recorded() -> Trace:
    return on_device(lambda b: _step(b, search_us=400, shapes=False))


def negative_some_parameters_are_unused() -> Trace:
    # Two of the exchanged weights got no gradient in this step.
    return on_device(lambda b: _step(b, search_us=400, exchanged=PARAMETERS + 2))


def negative_recorded_without_the_search() -> Trace:
    return record_training(norms_and_layers(6))


def negative_recorded_with_a_parameter_that_is_not_used() -> Trace:
    net = norms_and_layers(4)
    net.spare = norms_and_layers(1)
    net.forward = lambda x: [x := layer(x) for layer in list(net)[:12]][-1]
    return record_training(net, find_unused_parameters=True)
