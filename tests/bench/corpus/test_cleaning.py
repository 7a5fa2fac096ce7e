"""The corpus's ranges leave nothing in a recording that tells a spoiled one from a healthy one."""

from __future__ import annotations

import gc
from collections import Counter
from functools import cache
from itertools import pairwise

import pytest

torch = pytest.importorskip("torch")

from bench.corpus.boxes import nms  # noqa: E402
from bench.corpus.cleaning import Cleaned, take_out, without_overhead  # noqa: E402
from bench.corpus.job import Moment, Step  # noqa: E402
from bench.corpus.marks import spoiled  # noqa: E402
from bench.corpus.running import record  # noqa: E402
from bench.corpus.simulator.document import Event, parse  # noqa: E402
from tests.bench.corpus.tiny import SLUG, tiny_job, unfuse  # noqa: E402


@cache
def spoiled_run() -> bytes:
    job = tiny_job(ranks=2)
    unfuse(job, 1)
    return record(job, steps=2, warm_up=1)


def cleaned(document: bytes) -> Cleaned:
    return take_out(without_overhead(document), "tiny", moves_nothing=True)


def slices(document: bytes) -> list[Event]:
    return sorted((event for event in parse(document).events if event.ph == "X"), key=lambda e: (e.ts, -e.dur))


def test_no_name_tells_of_the_corpus() -> None:
    assert any(event.name.startswith("corpus.") for event in slices(spoiled_run()))
    left = [event.name for event in slices(cleaned(spoiled_run()).document)]
    telling = ("corpus.", *(f"bench/corpus/{part}" for part in ("marks", "faults", "surgery", "reduction")))
    assert not [name for name in left if name.startswith(telling)]


def test_a_marked_run_looks_like_an_unmarked_one() -> None:
    """The same work with and without the mark of a fault gives the same events."""

    def work(step: Step) -> None:
        torch.ones(3).add_(1)

    def marked(step: Step) -> None:
        with spoiled(SLUG):
            work(step)

    def names(hook: object) -> Counter[str]:
        job = tiny_job()
        job.hook(Moment.END, hook)  # type: ignore[arg-type]
        gc.disable()  # a collection runs when it likes, and other tests' libraries have a say in it
        try:
            document = cleaned(record(job, steps=2, warm_up=1)).document
        finally:
            gc.enable()
        found = Counter(event.name.split(" object at ")[0] for event in slices(document))
        return Counter({name: count for name, count in found.items() if "marked" not in name})

    assert names(work) == names(marked)


def test_what_marks_took_is_cut_out_of_the_time() -> None:
    before, after = slices(spoiled_run()), slices(without_overhead(spoiled_run()))
    length = {event.name: event.dur for event in before if event.name.startswith("ProfilerStep#")}
    shorter = {event.name: event.dur for event in after if event.name.startswith("ProfilerStep#")}
    assert all(0.5 * length[name] < shorter[name] < length[name] for name in length)
    work = [event for event in before if event.name == "aten::linear"]
    same = [event for event in after if event.name == "aten::linear"]
    assert [event.dur for event in work] == pytest.approx([event.dur for event in same], abs=0.002)


def test_operators_still_nest() -> None:
    events = slices(cleaned(spoiled_run()).document)
    for earlier, later in pairwise([event for event in events if event.cat == "cpu_op"]):
        if earlier.tid == later.tid and later.ts < earlier.ts + earlier.dur:
            assert later.ts + later.dur <= earlier.ts + earlier.dur + 0.002, (earlier.name, later.name)


def test_ranges_are_handed_back() -> None:
    document = without_overhead(spoiled_run())
    ranges = [event for event in slices(document) if event.name == f"corpus.spoiled {SLUG}"]
    found = take_out(document, "tiny").spoiled
    assert [part.slug for part in found] == [SLUG] * 2
    assert [(part.start_ns, part.end_ns) for part in found] == [
        (round(one.ts * 1000), round(one.ts * 1000) + round(one.dur * 1000)) for one in ranges
    ]


def test_arrows_keep_both_ends_or_none() -> None:
    events = parse(cleaned(spoiled_run()).document).events
    starts = Counter(event.id for event in events if event.ph == "s")
    assert starts == Counter(event.id for event in events if event.ph == "f")
    assert starts


def test_frames_of_faults_are_named_after_the_family() -> None:
    text = spoiled_run().replace(b"bench/corpus/blocks.py(", b"bench/corpus/faults/shared/a_b.py(")
    names = {event.name for event in slices(cleaned(text).document)}
    assert any(name.startswith("bench/corpus/families/tiny.py(") and name.endswith(": merge") for name in names)


def test_moves_are_nothing_on_the_cpu_only() -> None:
    document = without_overhead(spoiled_run())
    on_device, on_cpu = (take_out(document, "tiny", moves_nothing=cpu).document for cpu in (False, True))
    clones = [Counter(event.name for event in slices(one))["aten::clone"] for one in (on_device, on_cpu)]
    assert clones[0] - clones[1] == 2 * 2, "image and label of two steps"


def test_suppression_leaves_no_frames_of_its_stand_in() -> None:
    job = tiny_job(training=False)

    def suppress(step: Step) -> None:
        boxes = torch.rand(20, 2)
        nms(torch.cat([boxes, boxes + 0.2], 1), torch.rand(20), 0.5)

    job.hook(Moment.AFTER_FORWARD, suppress)
    after = slices(cleaned(record(job, steps=1, warm_up=1)).document)
    call = next(event for event in after if event.name == "torchvision::nms")
    inside = [e.name for e in after if call.ts <= e.ts and e.ts + e.dur <= call.ts + call.dur and e is not call]
    assert not inside


def test_a_job_without_ranges_passes_unchanged() -> None:
    document = cleaned(spoiled_run()).document
    assert parse(without_overhead(document)).events == parse(document).events
