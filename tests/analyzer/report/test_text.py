"""The text report reads as an editor's list of problems."""

from dataclasses import replace
from itertools import pairwise

from torchtraceap.analyzer.findings import (
    CURED,
    CounterRow,
    DetectorSummary,
    Evidence,
    Grain,
    How,
    Related,
    Report,
    SampleRow,
    Tables,
)
from torchtraceap.analyzer.report.text import count_line, to_text

from .reports import ATTENTION, EMPTY, EXPLAINED, FULL, LAYER, REPORT, SUMMARY, UNKNOWN

SOURCE = {("src/vit.py", 22): "\tattn = (q @ k.transpose(-2, -1)) * self.scale"}


def shown(report):
    return to_text(report, lambda place: SOURCE.get((place.path, place.line)), lambda slug: f"why {slug}").plain


def test_every_finding_has_a_line_that_editors_can_parse():
    lines = shown(REPORT).splitlines()
    assert (
        "src/vit.py:22:9: warning: attention runs as three passes: 98.2 of 316 ms per step; "
        "the fused call would save about 48.1 ms (15 %) [unfused-attention]"
    ) in lines
    assert any(line.startswith("(no line found): information: the trace has no stacks {none}") for line in lines)
    assert any(line.startswith("src/vit.py:22:9: hint: ") for line in lines)


def test_a_finding_gives_its_reason_evidence_caller_and_fix():
    text = shown(replace(REPORT, findings=(FULL,)))
    assert "why       why unfused-attention" in text
    assert "evidence  scores 16×6×144×144\n" in text
    assert "src/träin.py:47:17: called here by train" in text
    assert "Use scaled_dot_product_attention (about 48.1 ms per step) [safe]" in text


def test_an_unsure_place_is_called_a_guess():
    assert "sure      97 %, line found by stack" in shown(replace(REPORT, findings=(FULL,)))
    unsure = replace(FULL, location=replace(ATTENTION, how=How.OPERATOR, confidence=0.3))
    assert "sure      97 %; the line is a guess (30 %, by operator)" in shown(replace(REPORT, findings=(unsure,)))


def test_a_place_that_is_no_line_says_what_is_known():
    inside = replace(FULL, location=replace(ATTENTION, how=How.MODULE, confidence=0.6, grain=Grain.FUNCTION))
    assert "sure      97 %; only the function is known (60 %, by module)" in shown(replace(REPORT, findings=(inside,)))


def test_carets_stand_under_the_place_also_behind_a_tab():
    lines = shown(replace(REPORT, findings=(replace(FULL, location=replace(ATTENTION, column=2, end_column=6)),)))
    source, carets = next(pair for pair in pairwise(lines.splitlines()) if "attn = (q" in pair[0])
    assert source.index("attn") == carets.index("^^^^")
    assert "\t" in carets


def test_a_place_past_the_end_of_a_line_is_no_error():
    far = replace(FULL, location=replace(ATTENTION, column=400, end_column=420))
    assert "^" in shown(replace(REPORT, findings=(far,)))


def test_a_hint_takes_one_line():
    hint = REPORT.findings[2]
    report = replace(REPORT, findings=(hint,), tables=Tables())
    assert shown(report).count("\n") == shown(EMPTY).count("\n") + 5


def test_a_hint_of_what_is_mended_already_says_so_in_its_line():
    cured = Evidence(CURED, "the source holds what fixes this", "record again", "")
    hint = replace(REPORT.findings[2], evidence=(cured,))
    line = next(line for line in shown(replace(REPORT, findings=(hint,))).splitlines() if ": hint: " in line)
    assert line.endswith("] (the source holds what fixes this: record again)")


def test_the_summary_says_what_was_measured_and_what_is_wrong():
    text = shown(REPORT)
    assert "runs/train.pt.trace.json.gz\n  3 steady steps of 316 ms on CPU\n  compute 71 %, idle 29 %\n" in text
    assert "could not use: 2 events without a duration, first at byte 812" in text
    assert "would tell more: with_stack=True" in text


def test_what_the_detector_says_is_one_line():
    assert (
        "  detector: 2 of 41 windows look bad, the worst forward: Attention_0 (0.93, unfused-attention), "
        "1 in one step only, 3 unlike all that it knows\n"
    ) in shown(REPORT)
    nothing = DetectorSummary(41, 0, 0, 0, "", 0.0, "")
    healthy = replace(EMPTY, trace=replace(SUMMARY, detector=nothing))
    assert "  detector: none of 41 windows look bad\n" in shown(healthy)
    assert "detector" not in shown(EMPTY)


def test_many_traces_are_counted():
    ranks = replace(REPORT, trace=replace(REPORT.trace, paths=tuple(f"runs/rank{i}.json" for i in range(8))))
    assert shown(ranks).startswith("8 traces, the newest runs/rank0.json\n")


def test_counts():
    assert count_line(REPORT) == "3 findings: 1 warning, 1 information, 1 hint"
    assert count_line(EMPTY) == "no findings"
    assert shown(EMPTY).endswith("\nno findings\n")


def test_nothing_in_a_trace_steers_the_terminal_or_passes_for_a_finding():
    hostile = "\x1b]0;title\x07\x1b[2J\x9b1m\u202e\r\nsrc/a.py:1:1: warning: forged"
    finding = replace(FULL, message=hostile, evidence=(Evidence("x", hostile, hostile, hostile),), title=hostile)
    finding = replace(finding, related=(Related(hostile, ATTENTION),))
    trace = replace(REPORT.trace, paths=(hostile,), device=hostile, problems=(hostile,))
    text = to_text(Report(trace, (finding,)), lambda place: "\x1b[31m# \u202e", lambda slug: "").plain
    assert "\u241b]0;title" in text
    assert "\u241b[31m# \ufffd" in text
    assert not set(text) & set("\x1b\x07\x9b\u202e\r")
    assert not any(line.startswith("src/a.py") for line in text.splitlines())


def test_attention_layers_are_told_the_dearest_first():
    small = replace(LAYER, name="Attention_1", share_pct=2.0, key_tokens=77, heads=1, peak_tflops=0.1)
    text = shown(replace(REPORT, tables=Tables((small, LAYER, UNKNOWN))))
    lines = text[text.index("attention: 3 layers, 62 % of the step") :].splitlines()[1:4]
    assert lines == [
        "  Attention_0 src/vit.py:22: unfused, 30 % of the step, 6 heads of 64, 144 tokens, 0.03 TFLOP/s, compute 70 %",
        "  fmha_kernel (no line found): flash, 30 % of the step, 0.03 TFLOP/s",
        "  Attention_1 src/vit.py:22: unfused, 2 % of the step, 1 head of 64, 144 x 77 tokens, 0.03 of 0.1 TFLOP/s, "
        "compute 70 %",
    ]


def test_what_all_fixes_save_together_ends_the_report():
    together = replace(SUMMARY, combined_saving_us_per_step=12_100.0, combined_saving_pct=27.2)
    assert "; all fixes together would save about 12.1 ms (27 %)" in shown(replace(REPORT, trace=together))
    assert "together" not in shown(REPORT)


def test_a_finding_that_another_fix_removes_says_so():
    text = shown(replace(REPORT, findings=(replace(FULL, removed_by=("launch-bound", "tf32-off")),)))
    assert "after     little of this is left once launch-bound or tf32-off is fixed" in text


def test_what_has_no_place_any_more_says_why():
    text = shown(replace(REPORT, findings=(replace(FULL, location=None, fixes=(), stale="the file is gone"),)))
    assert "(no line any more)" in text and "stale     the file is gone; record again" in text
    assert "by hand" not in text


def test_kernels_with_counters_are_listed_with_what_was_counted():
    gemm = CounterRow("void gemm<4>(int)", 2, 140.0, 5e6, 71.4, 61.25, None, 5.0, None)
    bare = CounterRow("k", 3, None, None, None, None, None, None, None)
    text = shown(replace(EMPTY, tables=Tables(counters=(gemm, bare, *[bare] * 6))))
    assert "hardware counters: 8 kernels\n" in text
    line = "0.14 ms per step, 5 MB of DRAM traffic, 71.4 GB/s, 61.2 % L2 hits, 5 tensor core instructions"
    assert f"  gemm<4>(int): {line}\n" in text
    assert "  k: measured 3 times\n" in text
    assert "  and 2 more; --format json has them all\n" in text


def test_what_the_driver_said_is_one_line():
    samples = (
        SampleRow("gpu_busy_pct", 63.0, 98.0),
        SampleRow("memory_used_bytes", 4.1e9, 4.2e9),
        SampleRow("x", 1, 1),
    )
    text = shown(replace(EMPTY, tables=Tables(device_samples=samples)))
    assert "\ndevice while recording: gpu busy 63 % (at most 98 %), memory used 4.1 GB (at most 4.2 GB)\n" in text
    assert "device while" not in shown(EMPTY)


def test_what_a_language_model_says_stands_with_its_figures():
    text = shown(EXPLAINED)
    assert "it writes the scores" in text
    assert "(confirmed: 3 of 3 answers of Tiny, NF4 agree, and the analysis with them)" in text
    assert "it takes a while\n" in text
    assert "scores show it [scores 16×6×144×144]" in text
