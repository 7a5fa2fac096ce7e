"""Training on a GPU; scikit-learn takes as long as half the step."""

from tests.builders import V100
from tests.patterns.scenes import TraceBuilder, layer, on_device
from torchtraceap.analyzer.trace.model import Trace


def _moved(b: TraceBuilder) -> None:
    with b.frame("<built-in method cuda of Tensor object at 0x7f10>", us=2), b.op("aten::to", us=4):
        b.copy("HtoD (Pageable -> Device)", us=900, size_bytes=8 * 3 * 256 * 256 * 4)


def _step(b: TraceBuilder) -> None:
    with b.frame("torch/optim/optimizer.py(950): zero_grad", us=40):
        pass
    _moved(b)
    with b.frame("nn.Module: Unet_0", us=10):
        for _ in range(12):
            layer(b, "aten::conv2d", "volta_scudnn_128x64_relu", us=40, kernel_us=700)
    _moved(b)
    with b.frame("nn.Module: CrossEntropyLoss_0", us=6):
        layer(b, "aten::cross_entropy_loss", "nll_loss2d_forward_kernel", us=40, kernel_us=60)
    with b.frame("torch/_tensor.py(570): backward", us=10):
        for _ in range(12):
            layer(b, "aten::convolution_backward", "volta_scudnn_128x64_dgrad", us=50, kernel_us=1400)
    with b.frame("torch/optim/optimizer.py(480): wrapper"), b.annotation("Optimizer.step#SGD.step"):
        layer(b, "aten::_foreach_add_", "multi_tensor_apply_kernel", us=60, kernel_us=80)
    b.call("<built-in method flatten of Tensor object at 0x7f11>")
    with b.frame("<built-in method argmax of Tensor object at 0x7f10>", us=2):
        layer(b, "aten::argmax", "reduce_kernel", us=20, kernel_us=90, shapes=[(8, 2, 256, 256), (), ()])
    with b.frame("<built-in method cpu of Tensor object at 0x7f12>", us=2), b.op("aten::to", shapes=[(8, 256, 256)]):
        b.copy("DtoH (Device -> Pageable)", us=1200, size_bytes=8 * 256 * 256 * 8)
    with b.frame("<built-in method numpy of Tensor object at 0x7f12>", us=2):
        b.leaf("aten::detach", us=2, shapes=[(8, 256, 256)])
    b.call("<built-in method ravel of numpy.ndarray object at 0x7f13>")
    wrapper = b.frame("sklearn/utils/_param_validation.py(191): wrapper", us=60)
    with wrapper, b.frame("sklearn/metrics/_classification.py(251): confusion_matrix", us=9_000):
        b.call("sklearn/metrics/_classification.py(62): _check_targets", us=14_000)


def build() -> Trace:
    """Four steps of the loop in `train`."""
    return on_device(_step, frames=("source.py(11): train",), device=V100)
