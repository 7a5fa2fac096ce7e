import pytest

from tests.patterns.recorded import record
from tests.patterns.scenes import TraceBuilder, on_cpu, on_device
from torchtraceap.analyzer.trace.model import Trace

GEMM = "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_64x3_tn"
REDUCE = "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::NormTwoOps<float, float>>>"
SHAPES = ((64, 3, 7, 7), (64,), (64, 64, 3, 3), (128, 64, 3, 3), (128,), (256, 128, 1, 1), (256,), (1000, 256))
ITEM = "<built-in method item of Tensor object at 0x7f80448f3890>"


def _recorded(scan, *, layers: int = 25) -> Trace:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    model = torch.nn.Sequential(*(torch.nn.Linear(32, 32) for _ in range(layers)))
    batch = torch.rand(64, 32)

    def step() -> None:
        model.zero_grad()
        model(batch).square().mean().backward()
        scan(torch, model)

    return record(step)


def positive_recorded_norms_and_finite_checks() -> Trace:
    def report(torch, model):
        total, bad = 0.0, 0
        for p in model.parameters():
            total += p.grad.norm(2).item() ** 2
            if not torch.isfinite(p.grad).all():
                bad += 1
        return total, bad

    return _recorded(report)


def positive_recorded_any_nan() -> Trace:
    return _recorded(lambda torch, model: any(torch.isnan(p.grad).any() for p in model.parameters()))


def _train(b: TraceBuilder, shapes: tuple[tuple[int, ...], ...], *, device: bool = True) -> None:
    for _ in range(10):
        b.leaf("aten::linear", us=60 if device else 1000, kernel=GEMM if device else "", kernel_us=50)
    for shape in shapes:
        with b.op("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", us=2):
            b.leaf("torch::autograd::AccumulateGrad", us=2, shapes=[shape])


def positive_a_wait_for_each_parameter() -> Trace:
    def body(b: TraceBuilder) -> None:
        _train(b, SHAPES * 8)
        with b.frame("train.py(30): finite"):
            for shape in SHAPES * 8:
                b.leaf("aten::isfinite", us=20, kernel=REDUCE, kernel_us=3, shapes=[shape])
                b.leaf("aten::all", us=10, kernel=REDUCE, kernel_us=3, shapes=[shape])
                with b.op("aten::is_nonzero", us=2, shapes=[()]):
                    b.item()

    return on_device(body)


def positive_norms_without_shapes() -> Trace:
    def body(b: TraceBuilder) -> None:
        for _ in range(40):
            b.leaf("torch::autograd::AccumulateGrad", us=2)
        b.leaf("aten::linear", us=1000)
        for _ in range(40):
            with b.frame("torch/functional.py(1734): norm", us=12):
                b.leaf("aten::linalg_vector_norm", us=4)
            with b.frame(ITEM), b.op("aten::item", us=2):
                b.leaf("aten::_local_scalar_dense", us=1)

    return on_cpu(body)


def negative_values_of_outputs() -> Trace:
    """A loop over images that reads each one's loss: as many reads, but of other tensors than gradients."""

    def body(b: TraceBuilder) -> None:
        _train(b, SHAPES * 4, device=False)
        for _ in range(32):
            b.leaf("aten::mean", us=20, shapes=[(3, 224, 224)])
            with b.op("aten::item", us=2, shapes=[()]):
                b.leaf("aten::_local_scalar_dense", us=1, shapes=[()])

    return on_cpu(body)


def negative_few_parameters() -> Trace:
    return _recorded(lambda torch, model: [p.grad.norm().item() for p in model.parameters()], layers=4)


def negative_total_norm() -> Trace:
    return _recorded(lambda torch, model: torch.nn.utils.get_total_norm([p.grad for p in model.parameters()]).item())


def negative_norms_that_are_never_read() -> Trace:
    """As many norms, stacked on the device and read once."""
    return _recorded(lambda torch, model: torch.stack([p.grad.norm() for p in model.parameters()]).norm().item())


def negative_optimizer_reads_its_step_counters() -> Trace:
    """The optimizer's own reads are the optimizer's, however many there are."""

    def body(b: TraceBuilder) -> None:
        _train(b, SHAPES * 8, device=False)
        with b.annotation("Optimizer.step#Adam.step"):
            for shape in SHAPES * 8:
                b.leaf("aten::mul", us=10, shapes=[shape])
                with b.op("aten::item", us=2, shapes=[()]):
                    b.leaf("aten::_local_scalar_dense", us=1, shapes=[()])

    return on_cpu(body)
