"""A made dossier, small enough to read, for tests of what becomes of one."""

from __future__ import annotations

from torchtraceap.analyzer.diagnosis.dossier import Choice, Dossier, Excerpt, LayerRow, OfferedFix, TreeRow
from torchtraceap.analyzer.findings import Evidence, Safety, Stage

SOURCE = (
    "def train(loader, model, optimizer):",
    "    total = 0.0",
    "    for images, labels in loader:",
    "        optimizer.zero_grad()",
    "        loss = criterion(model(images), labels)",
    "        loss.backward()",
    "        optimizer.step()",
    "        total += loss.item()",
    "    return total / len(loader)",
)


def made_dossier() -> Dossier:
    """A training loop that reads its loss at every step."""
    return Dossier(
        slug="host-scalar-read",
        summary="the host reads a value from the device and waits for it",
        device="Tesla V100",
        torch_version="2.4.0",
        is_training=True,
        step_us=45123.4,
        cost_us_per_step=9123.4,
        saving_us_per_step=8012.3,
        saving_pct=17.76,
        probability=0.93,
        bad=0.88,
        choices=(
            Choice("host-scalar-read", "Host waits to read a device value", Stage.IMPLEMENTATION, 0.9, 0.7),
            Choice("unfused-attention", "Attention in three passes", Stage.IMPLEMENTATION, 0.0, 0.1),
            Choice("launch-bound", "Device waits for launches", Stage.HARDWARE, 0.4, None),
        ),
        evidence=(
            Evidence("count", "values read per step", 3.0, "", (5, 6, 7)),
            Evidence("waiting", "time that the host waits per step", 9123.4, "us"),
            Evidence("kernel", "kernel before it", "void at::native::add<float>(int, float)", ""),
            Evidence("cost", "time per step", 9.1234, "ms"),
            Evidence("spread", "half the range between the quartiles of the saving", 0.21, "ms"),
        ),
        tree=(
            TreeRow("t1", 0, "train.py(10): train", 1.0, 45123.4, 312.0, 100.0, 36000.0),
            TreeRow("t2", 1, "nn.Module: Net_0", 1.0, 12000.0, 4000.0, 60.0, 27000.0),
            TreeRow("t3", 2, "aten::conv2d", 53.0, 8000.0, 7000.0, 55.5, 25000.0),
            TreeRow("t4", 1, "aten::item", 3.0, 9123.4, 9123.4, 20.2, 0.0),
            TreeRow("t5", 1, "Optimizer.step#SGD.step", 1.0, 3000.0, 1000.0, 6.6, 500.0),
        ),
        layers=(
            LayerRow("l1", 0, "Net_0", (8, 3, 224, 224), (8, 1000), 60.0),
            LayerRow("l2", 1, "Conv2d_0", (8, 3, 224, 224), (8, 64, 112, 112), 12.5),
            LayerRow("l3", 1, "Linear_0", (), (8, 1000), None),
        ),
        source=Excerpt("train.py", "train", 10, SOURCE, 17),
        fixes=(
            OfferedFix("host-scalar-read", "Add up on the device and read once after the loop", Safety.SAFE),
            OfferedFix("host-scalar-read/every", "Read every hundredth value", Safety.UNSAFE),
        ),
        missing=("with_modules=True",),
    )
