"""Reports to print: one of everything a report can hold."""

from dataclasses import replace

from torchtraceap.analyzer.findings import (
    AttentionRow,
    Claim,
    DetectorSummary,
    Diagnosis,
    Evidence,
    FeatureMapRow,
    Finding,
    Fix,
    HeadRow,
    How,
    KindRow,
    LayoutChangeRow,
    Location,
    Related,
    Report,
    Safety,
    Severity,
    Stage,
    Tables,
    TextEdit,
    TraceSummary,
    Verdict,
    WindowRow,
)

ATTENTION = Location("src/vit.py", 22, 9, 22, 13, "Attention.forward", How.STACK, 0.9)
FULL = Finding(
    code="TAP601",
    slug="unfused-attention",
    severity=Severity.WARNING,
    title="Attention without a fused kernel",
    message="attention runs as three passes: 98.2 of 316 ms per step; the fused call would save about 48.1 ms (15 %)",
    cost_us_per_step=98_200.0,
    saving_us_per_step=48_100.0,
    saving_pct=15.2,
    probability=0.97,
    evidence=(
        Evidence("cost", "time per step", 98.2, "ms", (12, 40, 41)),
        Evidence("shape", "scores", "16×6×144×144", ""),
    ),
    location=ATTENTION,
    related=(Related("called here by train", Location("src/träin.py", 47, 17, 47, 40, "train", How.STACK)),),
    fixes=(
        Fix(
            "unfused-attention",
            "Use scaled_dot_product_attention (about 48.1 ms per step)",
            Safety.SAFE,
            (
                TextEdit("src/vit.py", 22, 9, 24, 40, "x = F.scaled_dot_product_attention(q, k, v)"),
                TextEdit("src/vit.py", 4, 1, 4, 1, "import torch.nn.functional as F\n"),
            ),
        ),
    ),
)
DIAGNOSIS = Diagnosis(
    verdict=Verdict.CONFIRMED,
    pattern="unfused-attention",
    stage=Stage.IMPLEMENTATION,
    cause="it writes the scores to memory and reads them twice",
    claims=(Claim("scores show it", ("shape",)), Claim("it takes a while", ())),
    claims_dropped=1,
    evidence=(Evidence("t1", "time in the softmax", 3.2, "ms"),),
    fix="unfused-attention",
    edit=Fix("model/unfused-attention", "Rewrite", Safety.UNSAFE, (TextEdit("src/vit.py", 22, 9, 24, 40, "x"),)),
    edit_refused="",
    confidence="high",
    agreement=1.0,
    answers=3,
    model="Tiny, NF4",
    seconds=4.0,
    cut=("2 of 9 layers",),
)
PLACELESS = Finding(
    code="TAP990",
    slug="trace-lacks-evidence",
    severity=Severity.INFORMATION,
    title="The trace lacks evidence",
    message="the trace has no stacks {none}: record with with_stack=True",
    cost_us_per_step=0.0,
    saving_us_per_step=0.0,
    saving_pct=0.0,
    probability=1.0,
    evidence=(),
)
SMALL = replace(FULL, severity=Severity.HINT, saving_us_per_step=900.0, saving_pct=0.3, fixes=(), related=())
SUMMARY = TraceSummary(
    paths=("runs/train.pt.trace.json.gz",),
    device="CPU",
    steps=3,
    step_us=316_500.0,
    gpu_idle_pct=None,
    step_idle_pct=None,
    breakdown={"compute_pct": 71.4, "idle_pct": 28.6, "memcpy_pct": 0.0},
    problems=("2 events without a duration, first at byte 812",),
    missing=("with_stack=True",),
)
LAYER = AttentionRow(
    "Attention_0", ATTENTION, "unfused", 30.1, 95_000.0, 60_000.0, 1.0, 16, 6, 64, 144, 144, 5.1e8, 0.03, None, 0.7,
    4_000.0, 0.0, 0.0, 0.0, (HeadRow(0, 0.2, 0.1667),),
)  # fmt: skip
CHANGE = LayoutChangeRow("NCHW -> NHWC", "contiguous", False, "", ATTENTION, (8, 3, 32, 32), None, 2.0, 41.5)
FEATURES = FeatureMapRow("Conv2d_0", "", "conv2d", None, (8, 3, 32, 32), (), "float", None, "NCHW")
UNKNOWN = replace(LAYER, name="fmha_kernel", location=None, backend="flash", heads=None, compute_ratio=None)
ATTENTION_KINDS = (KindRow("unfused-attention", 0.61),)
WINDOW = WindowRow(
    "forward: Attention_0", 3, 4, 120.5, 830.0, 30.1, 0.93, ATTENTION_KINDS, False, False, ATTENTION
)  # fmt: skip
ODD = replace(WINDOW, name="data", kinds=(), is_single=True, location=None)
SEEN = DetectorSummary(41, 2, 3, 1, "forward: Attention_0", 0.93, "unfused-attention")
REPORT = Report(
    replace(SUMMARY, detector=SEEN),
    (FULL, PLACELESS, SMALL),
    tables=Tables((LAYER, UNKNOWN), (CHANGE,), (FEATURES,), windows=(WINDOW,), single_windows=(ODD,)),
)
EXPLAINED = Report(SUMMARY, (replace(FULL, diagnosis=DIAGNOSIS),))
EMPTY = Report(replace(SUMMARY, problems=(), missing=(), gpu_idle_pct=31.0, step_idle_pct=28.0), ())
