from __future__ import annotations

from dataclasses import replace

from torchtraceap.analyzer.findings import Hotspot
from torchtraceap.codemap.asking import called_from
from torchtraceap.server.merge import Merge, merge_reports

from .reports import finding, place, report

A = place("a.py", 3, 1, 9, "f")
B = place("b.py", 7, 1, 9, "g")


def names(merge: Merge) -> list[tuple[str, int]]:
    return [(seen.finding.slug, len(seen.traces)) for seen in merge.seen]


def spot(path: str, qualname: str) -> Hotspot:
    return Hotspot(path, 1, qualname, 10.0, 1.0)


def test_the_newest_recording_decides_in_any_order() -> None:
    old, new = report(finding("x", A, saving_us=1.0)), report(finding("x", A, saving_us=2.0))
    for order in ((old, new), (new, old)):
        merge = Merge()
        for one in order:
            merge.add(one, "new" if one is new else "old", 2 if one is new else 1)
        (seen,) = merge.seen
        assert seen.finding.saving_us_per_step == 2.0 and seen.trace == "new" and len(seen.traces) == 2


def test_what_a_newer_recording_measured_and_no_longer_shows_is_gone() -> None:
    old, new = report(finding("x", A), finding("y", B)), report(hotspots=(spot("a.py", "f"),))
    for order in (("old", "new"), ("new", "old")):
        merge = Merge()
        for name in order:
            merge.add(old if name == "old" else new, name, 1 if name == "old" else 2)
        assert names(merge) == [("y", 1)], "g was not measured again, f was"


def test_a_function_that_led_to_a_finding_was_measured() -> None:
    """Frames that were running when recording began are no hotspots: the callers of findings tell of them."""
    loop = replace(finding("x", B), related=called_from((place("a.py", 5, 1, 9, "f"),)))
    merge = Merge()
    merge.add(report(finding("loader", A)), "old", 1)
    merge.add(report(loop), "new", 2)
    assert names(merge) == [("x", 1)]


def test_a_finding_without_a_place_is_the_newest_recordings() -> None:
    for order in ((1, 2), (2, 1)):
        merge = Merge()
        for time in order:
            merge.add(report(finding("lacks", None)) if time == 1 else report(), str(time), time)
        assert names(merge) == []


def test_a_deleted_recording_takes_what_only_it_showed() -> None:
    merge = Merge()
    merge.add(report(finding("x", A)), "1", 1)
    merge.add(report(finding("x", A), finding("y", B)), "2", 2)
    merge.remove("2")
    assert names(merge) == [("x", 1)]


def test_analysing_a_recording_again_does_not_count_twice() -> None:
    merge = Merge()
    for _ in range(2):
        merge.add(report(finding("x", A)), "1", 1)
    assert names(merge) == [("x", 1)]


def test_reports_say_what_recurs() -> None:
    three = [
        report(finding("x", A), hotspots=(spot("a.py", "f"),)),
        report(finding("x", A), finding("y", B)),
        report(finding("x", A), hotspots=(spot("c.py", "h"),)),
    ]
    merged = merge_reports(three)
    assert [f.message.rpartition("; ")[2] for f in merged.findings if f.slug == "x"] == ["seen in 3 of 3 recordings"]
    assert [f.slug for f in merged.findings] == ["x", "y"]
    assert {h.qualname for h in merged.hotspots} == {"f", "h"}
    assert merge_reports(three[:1]) == three[0]
