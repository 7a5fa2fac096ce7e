"""Broken files: what can be read is read, what can't is counted, and nothing but TraceError is ever raised."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from torchtraceap.analyzer.trace import stream
from torchtraceap.analyzer.trace.limits import Limits, TraceCancelled, TraceError
from torchtraceap.analyzer.trace.read import read_trace

from .documents import event, gzipped, kinds, read_events, read_text

GOOD = [event(f"op{i}", ts=i, args={"External id": i, "Input Dims": [[i]]}) for i in range(4)]


def kineto(events: list[str]) -> str:
    """A document laid out as Kineto does, from events that are text already."""
    body = "\n  },\n  {\n    ".join(events)
    return '{\n  "schemaVersion": 1,\n  "traceEvents": [\n  {\n    ' + body + '\n  }\n  ],\n  "traceName": "t"\n}'


def with_name(name: str) -> str:
    """A complete event with `name` pasted in unescaped."""
    return f'"ph": "X", "cat": "cpu_op", "name": "{name}", "pid": 1, "tid": 1, "ts": 3, "dur": 1'


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("C:\\Users\\name\\train.py(3): f", "C:\\Users\\name\\train.py(3): f"),
        ("C:\\qt\\", "C:\\qt\\"),
        ('say "hello" twice', 'say "hello" twice'),
        ("a\x01b", "a\x01b"),
        ("line\nbreak\ttab", "line\nbreak\ttab"),
        ("bad \\u12 escape", "bad \\u12 escape"),
        ("fine \\u0041 escape", "fine A escape"),
        ("trace ] name } , {", "trace ] name } , {"),
        ("x},{y", "x},{y"),
    ],
)
def test_names_that_break_json(tmp_path: Path, written: str, read: str) -> None:
    trace = read_text(tmp_path, kineto([with_name("before"), with_name(written), with_name("after")]))
    assert trace.names == ("before", read, "after")
    assert set(kinds(trace)) <= {"mended"}
    assert trace.file_index.tolist() == [0, 1, 2]


def test_invalid_utf8(tmp_path: Path) -> None:
    text = kineto([with_name("before"), with_name("NAME"), with_name("after")]).encode().replace(b"NAME", b"a\xff\xfeb")
    trace = read_text(tmp_path, text)
    assert trace.names == ("before", "a\ufffd\ufffdb", "after")
    assert kinds(trace) == {"mended": 1}
    assert text[trace.problems[0].offset :].lstrip().startswith(b'{\n    "ph": "X", "cat": "cpu_op", "name": "a\xff')


@pytest.mark.parametrize("number", ["inf", "-inf", "NaN", "nan", "Infinity", "-Infinity"])
def test_numbers_that_are_none(tmp_path: Path, number: str) -> None:
    odd = with_name("odd") + f', "args": {{"memory bandwidth (GB/s)": {number}, "correlation": 4}}'
    trace = read_text(tmp_path, kineto([odd, with_name("nan inf: kept")]))
    assert sorted(trace.names) == ["nan inf: kept", "odd"]
    timeless = with_name("odd").replace('"ts": 3', f'"ts": {number}')
    assert kinds(read_text(tmp_path, kineto([timeless, with_name("x")]))) == {"mended": 1, "timestamp": 1}


@pytest.mark.parametrize(
    "odd", [{"args": "text"}, {"args": None}, {"args": [1]}, {"name": 3}, {"cat": None}, {"pid": [1]}]
)
def test_fields_of_odd_types(tmp_path: Path, odd: dict[str, object]) -> None:
    trace = read_events(tmp_path, [event("a"), event("b", ts=20) | odd, event("c", ts=30)])
    assert len(trace) == 3


@pytest.mark.parametrize("odd", [[1, 2], {"a": 1, "b": 2}, [], "1,2", 10**40, 2**62, True])
@pytest.mark.parametrize("field", ["ts", "dur"])
def test_times_that_are_none(tmp_path: Path, field: str, odd: object) -> None:
    flows = [event(ph=ph, cat="ac2g", id=1) | {field: odd} for ph in "sf"]
    memory = event(ph="i", name="[memory]") | {field: odd}
    trace = read_events(tmp_path, [event("a"), event("b", ts=20) | {field: odd}, event("c", ts=30), *flows, memory])
    assert kinds(trace) == {"timestamp" if field == "ts" else "duration": 1}
    assert [trace.name_of(row) for row in range(len(trace))] == (["a", "c"] if field == "ts" else ["a", "b", "c"])


@pytest.mark.parametrize(
    "huge", [2**70, -(2**70), "9" * 30, "9" * 5000, "stream " + "9" * 5000, "stream \u00b2", 1e300]
)
@pytest.mark.parametrize("field", ["pid", "tid"])
def test_huge_identifiers(tmp_path: Path, field: str, huge: object) -> None:
    trace = read_events(tmp_path, [event(), event("k", cat="kernel", ts=20) | {field: huge}])
    assert len(trace) == 2
    assert (trace.device if field == "pid" else trace.stream).tolist()[1] == -1


@pytest.mark.parametrize("huge", [2**70, "9" * 5000, 1e300, float("nan"), [1]])
def test_huge_figures_of_the_document(tmp_path: Path, huge: object) -> None:
    device = {"id": 0, "name": "X", "numSms": huge, "computeMajor": huge}
    trace = read_events(tmp_path, [event()], deviceProperties=[device], baseTimeNanoseconds=huge)
    assert abs(trace.info.base_ns) < 2**63
    assert all(abs(each.multiprocessors) < 2**63 for each in trace.info.devices)


def test_events_that_are_no_objects(tmp_path: Path) -> None:
    trace = read_events(tmp_path, [event("a"), 3, event("b", ts=20)])
    assert kinds(trace)["event"] >= 1


def test_an_event_with_objects_in_a_list(tmp_path: Path) -> None:
    nested = event("nested", ts=15, args={"list": [{"a": 1}, {"b": 2}], "External id": 9})
    damaged = '{"ph": "X", "name": "lost" "ts": 3}'
    text = json.dumps([event("a"), "HERE", nested, event("z", ts=20)]).replace('"HERE"', damaged)
    trace = read_text(tmp_path, text)
    assert trace.names == ("a", "nested", "z")
    assert trace.external_id.tolist()[1] == 9
    assert kinds(trace) == {"event": 1}
    assert trace.problems[0].offset == text.index(damaged)
    assert trace.file_index.tolist() == [0, 2, 3]


def test_a_damaged_last_event(tmp_path: Path) -> None:
    text = json.dumps({"traceEvents": [*GOOD, "HERE"], "record_shapes": 1}).replace('"HERE"', '{"ph": "X" 1}')
    trace = read_text(tmp_path, text)
    assert len(trace) == 4
    assert trace.info.record_shapes is True
    assert kinds(trace) == {"event": 1}


@pytest.mark.parametrize("layout", [{}, {"indent": 1}, {"separators": (",", ":")}])
@pytest.mark.parametrize("is_gzip", [False, True])
def test_every_truncation(tmp_path: Path, layout: dict[str, object], is_gzip: bool) -> None:
    document = {"schemaVersion": 1, "traceEvents": GOOD, "distributedInfo": {"pg_config": [{"a": 1}, {"b": 2}]}}
    text = json.dumps(document, **layout).encode()  # pyright: ignore[reportArgumentType]
    whole = gzipped(text) if is_gzip else text
    lengths = []
    for cut in range(len(whole)):
        try:
            trace = read_text(tmp_path, whole[:cut])
        except TraceError:
            assert cut < len(whole) - 8
            continue
        lengths.append(len(trace))
        assert trace.names == tuple(f"op{i}" for i in range(len(trace)))
        assert trace.problems or text[cut:].strip() == b"", "a truncated file says so"
    assert lengths == sorted(lengths)
    assert lengths[-1] == 4


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), edits=st.integers(1, 6), is_gzip=st.booleans())
def test_fuzzed_damage(tmp_path: Path, seed: int, edits: int, is_gzip: bool) -> None:
    chance = random.Random(seed)
    text = bytearray(json.dumps({"traceEvents": GOOD, "record_shapes": 1}, indent=chance.choice([None, 1])).encode())
    if is_gzip:
        text = bytearray(gzipped(bytes(text)))
    for _ in range(edits):
        at = chance.randrange(len(text))
        edit = chance.randrange(3)
        if edit == 0:
            text[at] = chance.randrange(256)
        elif edit == 1:
            del text[at : at + chance.randrange(1, 40)]
        else:
            text[at:at] = chance.choice([b"}", b"]", b"},{", b'"', b"\\", b"\x00", b"[[[[", b"null", b"1e999"])
    try:
        trace = read_text(tmp_path, bytes(text))
    except TraceError as error:
        assert str(tmp_path) in str(error)
        return
    assert (trace.dur_ns >= 0).all()
    assert all(trace.inputs_of(row) is not None for row in range(len(trace)))


def test_lost_bytes_cost_only_their_events(tmp_path: Path) -> None:
    events = [event(f"op{i}", ts=i) for i in range(5000)]
    text = json.dumps({"traceEvents": events})
    at = text.index('"op2500"')
    trace = read_text(tmp_path, text[: at - 2] + text[at:])
    assert len(trace) == 4999
    assert kinds(trace) == {"event": 1}
    assert at - 200 < trace.problems[0].offset < at


def test_gzip_with_a_wrong_checksum(tmp_path: Path) -> None:
    packed = gzipped(json.dumps({"traceEvents": GOOD}).encode())
    trace = read_text(tmp_path, packed[:-8] + b"\x00" * 8)
    assert len(trace) == 4
    assert kinds(trace) == {"gzip-damaged": 1}


def test_gzip_without_trailer(tmp_path: Path) -> None:
    trace = read_text(tmp_path, gzipped(json.dumps({"traceEvents": GOOD}).encode())[:-8])
    assert len(trace) == 4
    assert kinds(trace) == {"gzip-truncated": 1}


def test_bytes_after_the_gzip_stream(tmp_path: Path) -> None:
    packed = gzipped(json.dumps({"traceEvents": GOOD}).encode())
    assert kinds(read_text(tmp_path, packed + b"trash")) == {"trailing-bytes": 1}
    assert kinds(read_text(tmp_path, packed + b"\0" * 512)) == {}


def test_gzip_damaged_in_the_middle(tmp_path: Path) -> None:
    chance = random.Random(1)
    events = [event(f"op{chance.random()}", ts=i) for i in range(20_000)]
    packed = bytearray(gzipped(json.dumps({"traceEvents": events}).encode()))
    packed[len(packed) // 2] ^= 0xFF
    trace = read_text(tmp_path, bytes(packed))
    assert 9_000 < len(trace) <= 20_000
    assert "gzip-damaged" in kinds(trace)
    assert [trace.name_of(row) for row in range(9_000)] == [e["name"] for e in events[:9_000]]


@pytest.mark.parametrize(
    "text",
    ["", "  \n", "hello", "3", "null", '"traceEvents"', "{}", '{"traceEvents": 3}', '{"a": [1, 2]}', "\x00\x01PK"],
)
def test_not_a_trace(tmp_path: Path, text: str) -> None:
    with pytest.raises(TraceError, match=r"trace\.json"):
        read_text(tmp_path, text)


def test_missing_file_and_folder(tmp_path: Path) -> None:
    for path in (tmp_path / "none.json", tmp_path):
        with pytest.raises(TraceError, match=str(path)):
            read_trace(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_pipes_and_devices_are_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "endless.json").symlink_to("/dev/zero")
    for name in ("pipe.json", "endless.json"):
        with pytest.raises(TraceError, match=f"{name}: not a regular file"):
            read_trace(tmp_path / name)


def test_a_file_name_that_is_no_text_is_named_all_the_same(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.json"))
    try:
        path.write_text(json.dumps([event()]))
    except OSError:
        pytest.skip("this file system takes only text")
    assert read_trace(path).info.paths == (f"{tmp_path}/\ufffd.json",)


def test_event_limit(tmp_path: Path) -> None:
    events = [event(ts=i, name="x" * 1000) for i in range(1000)]
    trace = read_text(tmp_path, json.dumps(events), limits=Limits(max_events=100))
    assert 100 <= len(trace) < 400
    assert kinds(trace) == {"limit": 1}
    assert "100 events" in trace.problems[0].message


def test_name_limit(tmp_path: Path) -> None:
    events = [event("short"), event("x" * 100_000), event("y" * 9)]
    trace = read_text(tmp_path, json.dumps(events), limits=Limits(max_name_chars=9))
    assert trace.names == ("short", "x" * 9 + "…", "y" * 9)
    assert kinds(trace) == {"limit": 1}
    assert "longer than 9 characters" in trace.problems[0].message


def test_size_limit(tmp_path: Path) -> None:
    events = [event(ts=i, name="x" * 1000) for i in range(2000)]
    trace = read_text(tmp_path, json.dumps(events), limits=Limits(max_bytes=1_000_000))
    assert 500 < len(trace) < 1000
    assert "limit" in kinds(trace)


def test_compression_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "RATIO_COUNTS_FROM", 1 << 20)
    bomb = gzipped(b"[" + b'{"ph": "C"},' * 200_000)
    trace = read_text(tmp_path, bomb, limits=Limits(max_compression_ratio=200))
    assert "compressed more than 200 times" in trace.problems[0].message


def test_damaged_events_limit(tmp_path: Path) -> None:
    text = "[" + ",".join([json.dumps(event("a")), *(['{"ph" 1}'] * 100_000)])
    trace = read_text(tmp_path, text, limits=Limits(max_lost_events=500))
    assert trace.names == ("a",)
    assert 500 <= kinds(trace)["event"] < 50_000
    assert "500 damaged events" in trace.problems[-1].message


def test_event_size_limit(tmp_path: Path) -> None:
    huge = event("huge", args={"x": "y" * 3_000_000})
    events = [event("a"), huge, event("b", ts=20), event("c", ts=30)]
    trace = read_text(tmp_path, json.dumps(events), limits=Limits(max_event_bytes=1_000_000))
    assert trace.names[0] == "a"
    assert trace.names[-1] == "c"
    assert "huge" not in trace.names
    assert "limit" in kinds(trace)


@pytest.mark.parametrize("depth", [70, 5_000, 200_000])
def test_deep_nesting(tmp_path: Path, depth: int) -> None:
    deep = event("deep", args={"Input Dims": "HERE", "correlation": 3})
    text = json.dumps([event("a"), deep, event("b", ts=20)]).replace('"HERE"', "[" * depth + "]" * depth)
    trace = read_text(tmp_path, text)
    assert {"a", "b"} <= set(trace.names)
    assert kinds(trace) in ({"limit": 1}, {"event": 1})
    assert all(trace.inputs_of(row).dims == () for row in range(len(trace)))


def test_deep_metadata(tmp_path: Path) -> None:
    deep = "[" * 999 + "]" * 999
    trace = read_text(tmp_path, f'{{"x": {deep}, "traceEvents": [{json.dumps(event())}]}}')
    assert len(trace) == 1
    assert kinds(trace) == {"limit": 1}


def test_hostile_separators_end_soon(tmp_path: Path) -> None:
    trace = read_text(tmp_path, '{"traceEvents": [' + '{"a":{"b"},{' * 3_000 + "]}")
    assert len(trace) == 0


def test_cancelling(tmp_path: Path) -> None:
    shares: list[float] = []
    text = json.dumps([event(ts=i) for i in range(20_000)])
    with pytest.raises(TraceCancelled):
        read_text(tmp_path, text, on_progress=shares.append, is_cancelled=lambda: bool(shares) and shares[-1] > 0.4)
    assert 0.4 < shares[-1] < 0.9
    assert shares == sorted(shares)
