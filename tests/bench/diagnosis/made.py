"""A small dossier to ask questions with."""

from __future__ import annotations

from bench.diagnosis.questions import Question
from torchtraceap.analyzer.diagnosis.dossier import Choice, Dossier, Excerpt, LayerRow, OfferedFix, TreeRow
from torchtraceap.analyzer.findings import Evidence, Safety, Stage

SLUG = "host-scalar-read"
OTHER = "explicit-synchronize"


def dossier(*, slug: str = SLUG, bad: float = 0.91, by_rule: float = 0.95, by_detector: float = 0.72) -> Dossier:
    return Dossier(
        slug=slug,
        summary="the host reads a value from the device and waits for it" if slug else "a part of the step: loss",
        device="NVIDIA A100",
        torch_version="2.9.0",
        is_training=True,
        step_us=22_345.6,
        cost_us_per_step=9_812.3,
        saving_us_per_step=6_123.4 if slug else 0.0,
        saving_pct=27.4 if slug else 0.0,
        probability=by_rule if slug else 0.0,
        bad=bad,
        choices=(
            Choice(SLUG, "Host waits to read a device value", Stage.IMPLEMENTATION, by_rule, by_detector),
            Choice(OTHER, "Step synchronises on purpose", Stage.IMPLEMENTATION, 0.0, 0.213),
        ),
        evidence=(Evidence("reads", "values read per step", 12.0, ""),) if slug else (),
        tree=(
            TreeRow("t1", 0, "step", 1.0, 22_345.6, 100.0, 100.0),
            TreeRow("t2", 1, "train.py(12): train_3_epochs", 1.0, 9_812.3, 5_000.0, 43.9),
            TreeRow("t3", 2, "aten::item", 12.0, 9_700.0, 9_700.0, 43.4, 8.5),
        ),
        layers=(LayerRow("l1", 0, "SwinBlock_3", (8, 64, 56, 56), (8, 64, 56, 56), 31.2),),
        source=None,
        fixes=(),
    )


def with_fixes(given: Dossier) -> Dossier:
    from dataclasses import replace

    source = Excerpt("train.py", "train", 10, ("def train(loader):", "    total += loss.item()"), 11)
    fixes = (
        OfferedFix(f"{SLUG}/every", "Read every 50 steps", Safety.UNSAFE),
        OfferedFix(SLUG, "Read once behind the loop", Safety.SAFE),
    )
    return replace(given, source=source, fixes=fixes)


def question(given: Dossier | None = None, right: tuple[str, ...] = (SLUG,), run: str = "0001_x_cpu") -> Question:
    return Question(given or dossier(), right, "resnet", run, "finding")
