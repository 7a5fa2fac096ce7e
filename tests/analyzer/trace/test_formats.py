"""Every variety that writers of traces are known for, one small document each."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from torchtraceap.analyzer.trace.model import NONE, Category, Trace

from .documents import event, gzipped, kinds, read_events, read_text

KERNEL = {"cat": "kernel", "pid": 0, "tid": 7}


@pytest.mark.parametrize("indent", [None, 1, 4])
@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
@pytest.mark.parametrize("is_list", [True, False])
def test_layouts(tmp_path: Path, indent: int | None, separators: tuple[str, str], is_list: bool) -> None:
    events = [event(f"op{i}", ts=i) for i in range(5)]
    document = events if is_list else {"traceEvents": events, "distributedInfo": {"pg_config": [{"a": 1}, {"b": 2}]}}
    trace = read_text(tmp_path, json.dumps(document, indent=indent, separators=separators))
    assert trace.names == ("op0", "op1", "op2", "op3", "op4")
    assert trace.ts_ns.tolist() == [0, 1000, 2000, 3000, 4000]
    assert trace.problems == ()
    assert (trace.info.distributed is None) is is_list


def test_gzip_is_told_by_content(tmp_path: Path) -> None:
    trace = read_text(tmp_path, gzipped(json.dumps([event()]).encode()))
    assert len(trace) == 1


def test_several_gzip_members(tmp_path: Path) -> None:
    text = json.dumps([event("a"), event("b")]).encode()
    trace = read_text(tmp_path, gzipped(text[:30]) + gzipped(text[30:]))
    assert trace.names == ("a", "b")
    assert trace.problems == ()


def test_byte_order_mark_and_leading_space(tmp_path: Path) -> None:
    trace = read_text(tmp_path, b"\xef\xbb\xbf \n" + json.dumps([event()]).encode())
    assert len(trace) == 1


def test_keys_after_and_before_the_events(tmp_path: Path) -> None:
    text = '{"baseTimeNanoseconds": 7, "traceEvents": [%s], "record_shapes": 1, "with_stack": 0}'
    trace = read_text(tmp_path, text % json.dumps(event()))
    assert (trace.info.base_ns, trace.info.record_shapes, trace.info.with_stack) == (7, True, False)
    assert trace.info.profile_memory is None


def test_events_key_inside_a_string_is_none(tmp_path: Path) -> None:
    text = json.dumps({"note": 'see "traceEvents": [ here', "traceEvents": [event()]})
    assert len(read_text(tmp_path, text)) == 1


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Operator", Category.CPU_OP),
        ("Kernel", Category.KERNEL),
        ("Memcpy", Category.MEMCPY),
        ("Memset", Category.MEMSET),
        ("Runtime", Category.RUNTIME),
        ("cuda_driver", Category.RUNTIME),
        ("gpu_memcpy", Category.MEMCPY),
        ("gpu_user_annotation", Category.DEVICE_ANNOTATION),
        ("python_function", Category.PYTHON_FUNCTION),
        ("cuda_sync", Category.SYNC),
        ("overhead", Category.OVERHEAD),
        ("Trace", Category.PROFILER),
        ("cuda_profiler_range", Category.COUNTER_RANGE),
        ("something new", Category.OTHER),
    ],
)
def test_categories(tmp_path: Path, old: str, new: Category) -> None:
    assert read_events(tmp_path, [event(cat=old)]).cat.tolist() == [new]


def test_old_annotations_filed_under_operator(tmp_path: Path) -> None:
    names = ("ProfilerStep#3", "Optimizer.step#SGD.step", "enumerate(DataLoader)#_X.__next__", "aten::add")
    trace = read_events(tmp_path, [event(name, ts=i, cat="Operator") for i, name in enumerate(names)])
    assert trace.cat.tolist() == [Category.USER_ANNOTATION] * 3 + [Category.CPU_OP]


def test_legacy_autograd_profiler(tmp_path: Path) -> None:
    host = {"ph": "X", "name": "conv2d", "ts": 10.5, "dur": 3.25, "tid": 0, "pid": "CPU functions", "args": {}}
    device = {"ph": "X", "name": "conv_kernel", "ts": 12.0, "dur": 1.0, "tid": 0, "pid": "CUDA functions", "args": {}}
    copy = {**device, "name": "Memcpy HtoD", "ts": 14}
    arrow = {"name": "conv2d", "tid": 0, "id": 1, "cat": "cpu_to_cuda", "args": {}}
    start = {**arrow, "ph": "s", "ts": 10.5, "pid": "CPU functions"}
    end = {**arrow, "ph": "f", "ts": 12.0, "pid": "CUDA functions"}
    trace = read_text(tmp_path, json.dumps([host, device, copy, start, end]))
    assert trace.cat.tolist() == [Category.CPU_OP, Category.KERNEL, Category.MEMCPY]
    assert trace.dur_ns.tolist() == [3250, 1000, 1000]
    assert trace.flows.kinds == ("launch",)
    assert trace.flows.start_ts_ns.tolist() == [10500]
    assert trace.threads[trace.flows.end_thread[0]].pid == "CUDA functions"


def test_quoted_numbers(tmp_path: Path) -> None:
    args = {"correlation": "12", "External id": "3", "stream": "0x10", "device": "1"}
    trace = read_events(tmp_path, [event(ts="1712195495519689.047", dur="2.5", **KERNEL, args=args)])
    assert trace.ts_ns.tolist() == [1712195495519689047]
    assert trace.dur_ns.tolist() == [2500]
    assert (trace.correlation[0], trace.external_id[0], trace.stream[0], trace.device[0]) == (12, 3, 16, 1)


def test_both_spellings_of_external_id_and_dims(tmp_path: Path) -> None:
    old = event("a", args={"external id": 4, "Input dims": [[2, 3]]})
    new = event("b", ts=11, args={"External id": 5, "Input Dims": [[2, 3], []]})
    trace = read_events(tmp_path, [old, new])
    assert trace.external_id.tolist() == [4, 5]
    assert [trace.inputs_of(row).dims for row in (0, 1)] == [((2, 3),), ((2, 3), ())]


def test_inputs_of_a_tensor_list(tmp_path: Path) -> None:
    args = {
        "Input Dims": [[[2, 3], [4]], [], [5]],
        "Input Strides": [[[3, 1], [1]], [], [1]],
        "Input type": ["TensorList", "Scalar", "float"],
        "Concrete Inputs": ["", "1", ""],
    }
    trace = read_events(tmp_path, [event(args=args), event("b", ts=20)])
    inputs = trace.inputs_of(0)
    assert inputs.dims == (((2, 3), (4,)), (), (5,))
    assert inputs.shape(0) == ()
    assert (inputs.shape(2), inputs.stride(2), inputs.dtype(2), inputs.value(1)) == ((5,), (1,), "float", "1")
    assert trace.inputs[1] == NONE
    assert trace.inputs_of(1).dims == ()


def test_equal_inputs_are_stored_once(tmp_path: Path) -> None:
    events = [event(ts=i, args={"Input Dims": [[i % 3]], "Input type": ["float"]}) for i in range(30)]
    trace = read_events(tmp_path, events)
    assert len(trace.input_table) == 3
    assert [trace.inputs_of(row).shape(0) for row in range(4)] == [(0,), (1,), (2,), (0,)]


def test_call_stack_args(tmp_path: Path) -> None:
    stack = "model.py(3): forward;train.py(9): <module>"
    trace = read_events(
        tmp_path, [event(args={"Call stack": stack}), event(ts=11, args={"Call stack": stack}), event(ts=12)]
    )
    assert [trace.stack_of(row) for row in range(3)] == [stack, stack, ""]
    assert trace.stacks == (stack,)


def test_python_ids(tmp_path: Path) -> None:
    root = event("train.py(1): main", cat="python_function", args={"Python id": 1, "Python parent id": None})
    child = event("a.py(2): f", ts=11, dur=1, cat="python_function", args={"Python id": 2, "Python parent id": 1})
    trace = read_events(tmp_path, [root, child])
    assert trace.python_id.tolist() == [1, 2]
    assert trace.python_parent.tolist() == [NONE, 1]


def test_threads_spelled_two_ways_are_one(tmp_path: Path) -> None:
    flow = {"cat": "fwdbwd", "name": "fwdbwd", "id": 2**53 + 1, "pid": 1}
    events = [
        event(tid="25738"),
        {**flow, "ph": "s", "tid": 25738, "ts": 10},
        {**flow, "ph": "f", "tid": "25738", "ts": 12, "bp": "e"},
        {**flow, "ph": "f", "tid": 25738, "ts": 13, "id": 2**53},
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": 25738, "args": {"name": "python"}},
        {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "train"}},
    ]
    trace = read_events(tmp_path, events)
    assert [(t.pid, t.tid, t.name, t.process_name) for t in trace.threads] == [(1, 25738, "python", "train")]
    assert trace.flows.end_ts_ns.tolist() == [12000]


def test_one_flow_start_may_have_many_ends(tmp_path: Path) -> None:
    flow = {"cat": "cpu_to_cuda", "name": "launch", "id": 5, "pid": 1, "tid": 1}
    events = [event(), {**flow, "ph": "s", "ts": 1}, *({**flow, "ph": "f", "ts": ts} for ts in (2, 3, 4))]
    trace = read_events(tmp_path, events)
    assert trace.flows.start_ts_ns.tolist() == [1000] * 3
    assert trace.flows.end_ts_ns.tolist() == [2000, 3000, 4000]


def test_reused_flow_id_pairs_with_the_latest_start(tmp_path: Path) -> None:
    flow = {"cat": "fwdbwd", "name": "fwdbwd", "id": 5, "pid": 1, "tid": 1}
    events = [{**flow, "ph": phase, "ts": ts} for phase, ts in (("s", 1), ("f", 2), ("s", 3), ("f", 4))]
    trace = read_events(tmp_path, events)
    assert trace.flows.start_ts_ns.tolist() == [1000, 3000]


def test_arrows_that_repeat_correlations_are_left_out(tmp_path: Path) -> None:
    arrows = [{"cat": cat, "id": 5, "pid": 1, "tid": 1} for cat in ("ac2g", "async", "async_gpu", "async_cpu_to_gpu")]
    ends = [{**arrow, "ph": phase, "ts": ts} for arrow in arrows for phase, ts in (("s", 1), ("f", 2))]
    trace = read_events(tmp_path, [event(), *ends])
    assert trace.flows.kinds == ()
    assert trace.problems == ()


def test_memory_instants_of_both_kinds(tmp_path: Path) -> None:
    memory = {"ph": "i", "name": "[memory]", "pid": 1, "tid": 1, "s": "t"}
    old = {**memory, "ts": 1, "args": {"Device Type": 0, "Device Id": -1, "Bytes": 4}}
    sizes = {"Bytes": -8, "Addr": 94554918915840, "Total Allocated": 12, "Total Reserved": 16}
    new = {**memory, "ts": 2, "cat": "cpu_instant_event", "args": {"Device Type": 1, "Device Id": 2, **sizes}}
    other = {"ph": "i", "name": "Record Window End", "pid": "", "tid": "", "ts": 3, "s": "g"}
    table = read_events(tmp_path, [new, old, other]).memory
    assert table.ts_ns.tolist() == [1000, 2000]
    assert table.size_bytes.tolist() == [4, -8]
    assert table.device.tolist() == [NONE, 2]
    assert table.address.tolist() == [NONE, 94554918915840]
    assert table.total_allocated_bytes.tolist() == [NONE, 12]
    assert table.total_reserved_bytes.tolist() == [NONE, 16]


def test_device_and_stream_from_the_thread(tmp_path: Path) -> None:
    numbered = event("k", **KERNEL)
    named = event("k", ts=20, cat="Kernel", pid=1, tid="stream 20")
    recorded = event("k", ts=30, **KERNEL, args={"device": 2, "stream": 3, "correlation": 9})
    trace = read_events(tmp_path, [numbered, named, recorded, event(ts=40, args={"Device": 25738})])
    assert trace.device.tolist() == [0, 1, 2, NONE]
    assert trace.stream.tolist() == [7, 20, 3, NONE]


def test_mtia(tmp_path: Path) -> None:
    device = {"cat": "mtia_ccp_events", "pid": 17, "tid": 3774}
    events = [
        event("runFunction", cat="mtia_runtime", args={"correlation": 5}),
        event("pe_exe", ts=20, **device, args={"stream": 112}),
        event("dma_request", ts=30, **device, args={"stream": 105, "size": 1024}),
        event("event_wait", ts=40, **device, args={"stream": 108, "wait_on_stream": 104}),
    ]
    trace = read_events(tmp_path, events)
    assert trace.cat.tolist() == [Category.RUNTIME, Category.KERNEL, Category.MEMCPY, Category.SYNC]
    assert trace.device.tolist() == [NONE, 17, 17, 17]
    assert trace.size_bytes.tolist() == [NONE, NONE, 1024, NONE]
    assert trace.sync_stream.tolist() == [NONE, NONE, NONE, 104]


def test_amd_kernel_without_extras(tmp_path: Path) -> None:
    launch = event("hipLaunchKernel", cat="cuda_runtime", args={"correlation": 7, "stream": "0x0", "bytes": "128"})
    kernel = event("Cijk_Ailk", ts=20, cat="kernel", pid=2, tid=0, args={"device": 2, "stream": 0, "correlation": 7})
    trace = read_events(tmp_path, [launch, kernel])
    assert trace.correlation.tolist() == [7, 7]
    assert trace.device.tolist() == [NONE, 2]


def test_collectives(tmp_path: Path) -> None:
    args = {
        "Collective name": "allreduce",
        "In msg nelems": 10,
        "Out msg nelems": 20,
        "dtype": "Float",
        "Group size": 8,
        "Process Group Name": "0",
    }
    trace = read_events(tmp_path, [event("ncclKernel", ts=30, **KERNEL, args=args), event(ts=5)])
    (call,) = trace.collectives
    assert (call.row, call.name, call.elements_in, call.elements_out) == (1, "allreduce", 10, 20)
    assert (call.dtype, call.group_size, call.group_name) == ("Float", 8, "0")


def test_sync_records(tmp_path: Path) -> None:
    args = {"stream": 7, "wait_on_stream": 20, "wait_on_cuda_event_record_corr_id": 5169}
    trace = read_events(tmp_path, [event("Stream Wait Event", cat="cuda_sync", pid=0, tid=7, args=args)])
    assert (trace.sync_stream[0], trace.sync_event[0], trace.stream[0]) == (20, 5169, 7)


def test_devices_and_distributed_info(tmp_path: Path) -> None:
    gpu = {"id": 0, "name": "NVIDIA A100", "totalGlobalMem": 42, "computeMajor": 8, "computeMinor": 0, "numSms": 108}
    info = read_events(
        tmp_path, [event()], deviceProperties=[gpu, {}], distributedInfo={"backend": "nccl", "rank": 3, "world_size": 8}
    ).info
    assert [(d.index, d.name, d.multiprocessors) for d in info.devices] == [(0, "NVIDIA A100", 108), (1, "", 0)]
    assert info.distributed is not None
    assert (info.distributed.backend, info.distributed.rank, info.distributed.world_size) == ("nccl", 3, 8)


@pytest.mark.parametrize("properties", [[], None, "none", [3]])
def test_odd_device_properties(tmp_path: Path, properties: object) -> None:
    assert read_events(tmp_path, [event()], deviceProperties=properties).info.devices == ()


def test_rows_are_sorted_and_know_their_place(tmp_path: Path) -> None:
    events = [event("late", ts=9), event("inner", ts=3, dur=1), event("outer", ts=3, dur=4), event("twin", ts=3, dur=4)]
    trace = read_events(
        tmp_path, [events[0], {"ph": "C", "name": "n", "pid": 0, "ts": 1, "args": {"x": 1}}, *events[1:]]
    )
    assert [trace.name_of(row) for row in range(4)] == ["outer", "twin", "inner", "late"]
    assert trace.file_index.tolist() == [3, 4, 2, 0]
    assert trace.problems == ()


def test_zero_times_and_negative_durations(tmp_path: Path) -> None:
    far = 1_712_195_495_519_689
    trace = read_events(tmp_path, [event("a", ts=0), event("b", ts=far, dur=-1), event("c", ts=far + 1, dur=0)])
    assert [trace.name_of(row) for row in range(len(trace))] == ["b", "c"]
    assert trace.dur_ns.tolist() == [0, 0]
    assert kinds(trace) == {"zero-timestamp": 1, "negative-duration": 1}


def test_zero_is_a_time_where_others_are_near(tmp_path: Path) -> None:
    assert read_events(tmp_path, [event(ts=0), event(ts=100)]).ts_ns.tolist() == [0, 100_000]


def test_no_events(tmp_path: Path) -> None:
    trace: Trace = read_events(tmp_path, [])
    assert len(trace) == 0
    assert trace.problems == ()


def test_begin_and_end_phases_are_counted(tmp_path: Path) -> None:
    begin = {"ph": "B", "name": "x", "pid": 1, "tid": 1, "ts": 1}
    assert kinds(read_events(tmp_path, [event(), begin, {**begin, "ph": "E"}])) == {"phase": 2}
