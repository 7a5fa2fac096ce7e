"""Small traces for tests, made by playing a host and its device streams.

    b = TraceBuilder()
    with b.step(3):
        with b.op("aten::conv2d", shapes=[(8, 3, 32, 32), (16, 3, 3, 3)]):
            b.kernel("sgemm_128x64", us=100)
        b.synchronize()
    trace = b.build()

Times are microseconds. A host cursor per thread moves on with everything that the host does; a kernel starts when
it has been launched and its stream is free, and a synchronisation holds the host until the streams are empty. Every
call that adds an event answers a handle (its position in the file); `row_of(trace, handle)` is its row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from torchtraceap.analyzer.trace.model import (
    NONE,
    Category,
    DeviceProperties,
    Dims,
    Distributed,
    FlowTable,
    MemoryTable,
    OpInputs,
    Thread,
    Trace,
    TraceInfo,
)

A100 = DeviceProperties(0, "NVIDIA A100-SXM4-40GB", 40 << 30, 8, 0, 108, 32)
V100 = DeviceProperties(0, "Tesla V100-SXM2-16GB", 16 << 30, 7, 0, 80, 32)

INT_COLUMNS = {
    "correlation": np.int64,
    "external_id": np.int64,
    "sequence": np.int64,
    "python_id": np.int64,
    "python_parent": np.int64,
    "size_bytes": np.int64,
    "sync_stream": np.int64,
    "sync_event": np.int64,
    "stream": np.int64,
    "device": np.int32,
}


class TraceBuilder:
    """Collects events; `build` makes the `Trace`."""

    def __init__(
        self, *, devices: Sequence[DeviceProperties] = (A100,), pid: int = 100, tid: int = 1, launch_us: float = 5
    ) -> None:
        self.devices = tuple(devices)
        self.pid = pid
        self.tid = tid
        self.launch_us = launch_us
        self.now: dict[int, float] = {}
        """Host cursor of each thread."""
        self.stream_free: dict[int, float] = {}
        self.distributed: Distributed | None = None
        self._events: list[dict[str, object]] = []
        self._python_stack: dict[int, list[int]] = {}
        self._flows: list[tuple[float, int, float, int]] = []

    # ---- anything ------------------------------------------------------------------------------------------------

    def event(
        self, category: Category, name: str, ts: float, dur: float, *, tid: int | str | None = None, **fields: object
    ) -> int:
        """One event exactly as given. `fields` are columns of `Trace`, or `inputs=OpInputs(...)`, `stack=str`."""
        pid = 0 if category in (Category.KERNEL, Category.MEMCPY, Category.MEMSET) else self.pid
        thread = Thread(pid, self.tid if tid is None else tid)
        self._events.append({"cat": category, "name": name, "ts": ts, "dur": dur, "thread": thread, **fields})
        return len(self._events) - 1

    # ---- the host ------------------------------------------------------------------------------------------------

    @property
    def cursor(self) -> float:
        """Where the current thread's host time stands."""
        return self.now.setdefault(self.tid, 0.0)

    def host(self, us: float) -> TraceBuilder:
        """Let host time pass with no event of its own."""
        self.now[self.tid] = self.cursor + us
        return self

    @contextmanager
    def thread(self, tid: int) -> Iterator[None]:
        """Do what follows on another thread, from the current time on; time here then goes on after it."""
        before, start = self.tid, self.cursor
        self.tid = tid
        self.now[tid] = max(self.now.get(tid, 0.0), start)
        yield
        end = self.cursor
        self.tid = before
        self.now[before] = max(self.cursor, end)

    @contextmanager
    def _range(self, category: Category, name: str, us: float, **fields: object) -> Iterator[int]:
        """An event round what the block does, `us` of its own time shared before and after it."""
        handle = self.event(category, name, self.cursor, 0, **fields)
        event = self._events[handle]
        self.host(us / 2)
        yield handle
        self.host(us / 2)
        event["dur"] = self.cursor - float(event["ts"])  # pyright: ignore[reportArgumentType]

    @contextmanager
    def op(
        self,
        name: str,
        *,
        us: float = 10,
        shapes: Sequence[Dims | tuple[Dims, ...]] = (),
        strides: Sequence[Dims | tuple[Dims, ...]] = (),
        types: Sequence[str] = (),
        concrete: Sequence[str] = (),
        **fields: object,
    ) -> Iterator[int]:
        """An operator; `us` is its own host time. `sequence=`, `external_id=`, `stack=` as wanted."""
        if shapes or strides or types or concrete:
            fields["inputs"] = OpInputs(tuple(shapes), tuple(strides), tuple(types), tuple(concrete))
        with self._range(Category.CPU_OP, name, us, **fields) as handle:
            yield handle

    def leaf(self, name: str, *, us: float = 10, kernel: str = "", kernel_us: float = 10, **fields: object) -> int:
        """An operator with nothing inside, or one that launches one kernel."""
        with self.op(name, us=us, **fields) as handle:  # pyright: ignore[reportArgumentType]
            if kernel:
                self.kernel(kernel, us=kernel_us)
        return handle

    @contextmanager
    def annotation(self, name: str, *, us: float = 0) -> Iterator[int]:
        """A `record_function` range."""
        with self._range(Category.USER_ANNOTATION, name, us) as handle:
            yield handle

    @contextmanager
    def step(self, number: int, *, us: float = 0) -> Iterator[int]:
        """`ProfilerStep#number`."""
        with self.annotation(f"ProfilerStep#{number}", us=us) as handle:
            yield handle

    @contextmanager
    def frame(self, name: str, *, us: float = 0) -> Iterator[int]:
        """A `python_function` event, with Python ids as the profiler gives them."""
        stack = self._python_stack.setdefault(self.tid, [])
        python_id = len(self._events) + 1
        fields: dict[str, object] = {"python_id": python_id, "python_parent": stack[-1] if stack else NONE}
        stack.append(python_id)
        with self._range(Category.PYTHON_FUNCTION, name, us, **fields) as handle:
            yield handle
        stack.pop()

    def call(self, name: str, *, us: float = 1) -> int:
        """A Python frame with nothing inside, such as `<built-in method item of Tensor object at 0x7f>`."""
        with self.frame(name, us=us) as handle:
            pass
        return handle

    def flow(self, start_handle: int, end_handle: int) -> None:
        """A `fwdbwd` arrow from one event's start to another's."""
        ends = [(self._events[h]["ts"], self._events[h]["thread"]) for h in (start_handle, end_handle)]
        self._flows.append((ends[0][0], ends[0][1], ends[1][0], ends[1][1]))  # pyright: ignore[reportArgumentType]

    # ---- launches and the device ---------------------------------------------------------------------------------

    def launch(self, name: str = "cudaLaunchKernel", *, us: float | None = None) -> int:
        """A runtime call; its handle is also the correlation of what it launches."""
        took = self.launch_us if us is None else us
        handle = self.event(Category.RUNTIME, name, self.cursor, took)
        self._events[handle]["correlation"] = handle + 1
        self.host(took)
        return handle

    def device_work(
        self, category: Category, name: str, *, us: float, launched: int | None, stream: int = 7, **fields: object
    ) -> int:
        """A device event that starts when launched and when its stream is free. `launched`: handle of the call."""
        start = self.stream_free.get(stream, 0.0)
        if launched is not None:
            call = self._events[launched]
            start = max(start, float(call["ts"]) + float(call["dur"]))  # pyright: ignore[reportArgumentType]
            fields["correlation"] = call["correlation"]
        self.stream_free[stream] = start + us
        fields.setdefault("device", 0)
        return self.event(category, name, start, us, tid=stream, stream=stream, **fields)

    def kernel(self, name: str, *, us: float, stream: int = 7, launch: str = "cudaLaunchKernel") -> int:
        """A kernel, launched now."""
        return self.device_work(Category.KERNEL, name, us=us, launched=self.launch(launch), stream=stream)

    def copy(
        self, kind: str = "HtoD (Pageable -> Device)", *, us: float, size_bytes: int = 1 << 20, stream: int = 7
    ) -> int:
        """`Memcpy <kind>`, launched now. The host waits for copies from or to pageable memory."""
        call = self.launch("cudaMemcpyAsync")
        handle = self.device_work(
            Category.MEMCPY, f"Memcpy {kind}", us=us, launched=call, stream=stream, size_bytes=size_bytes
        )
        if "Pageable" in kind:
            end = self.stream_free[stream]
            self._events[call]["dur"] = end - float(self._events[call]["ts"])  # pyright: ignore[reportArgumentType]
            self.now[self.tid] = end
        return handle

    def synchronize(self, name: str = "cudaDeviceSynchronize", *, stream: int | None = None, us: float = 2) -> int:
        """The host waits for one stream, or for all of them; `us` is the call's own cost."""
        waited = [self.stream_free.get(stream, 0.0)] if stream is not None else list(self.stream_free.values())
        start = self.cursor
        end = max([start, *waited]) + us
        self.now[self.tid] = end
        handle = self.event(Category.RUNTIME, name, start, end - start)
        self._events[handle]["correlation"] = handle + 1
        return handle

    def item(self, *, copy_us: float = 1) -> int:
        """`aten::item` on a device tensor: a small copy to the host and a wait for it."""
        with self.op("aten::item", us=2) as handle, self.op("aten::_local_scalar_dense", us=2):
            call = self.launch("cudaMemcpyAsync")
            self.device_work(
                Category.MEMCPY, "Memcpy DtoH (Device -> Pageable)", us=copy_us, launched=call, size_bytes=4
            )
            self.synchronize("cudaStreamSynchronize", stream=7)
        return handle

    # ---- the result ----------------------------------------------------------------------------------------------

    def build(self) -> Trace:
        """The trace, rows in order of (ts, -dur)."""
        ts = np.array([round(float(e["ts"]) * 1000) for e in self._events], dtype=np.int64)  # pyright: ignore
        dur = np.array([round(float(e["dur"]) * 1000) for e in self._events], dtype=np.int64)  # pyright: ignore
        order = np.lexsort((-dur, ts))
        events = [self._events[i] for i in order]
        names: dict[str, int] = {}
        threads: dict[Thread, int] = {}
        stacks: dict[str, int] = {}
        inputs: dict[OpInputs, int] = {}

        def interned(table: dict, key: str) -> np.ndarray:
            return np.array(
                [table.setdefault(e[key], len(table)) if key in e else NONE for e in events], dtype=np.int32
            )

        columns = {key: np.array([e.get(key, NONE) for e in events], dtype=dtype) for key, dtype in INT_COLUMNS.items()}
        columns |= {
            "name": interned(names, "name"),
            "thread": interned(threads, "thread"),
            "stack": interned(stacks, "stack"),
            "inputs": interned(inputs, "inputs"),
            "cat": np.array([e["cat"] for e in events], dtype=np.int8),
        }
        return Trace(
            ts_ns=ts[order],
            dur_ns=dur[order],
            file_index=order.astype(np.int64),
            **columns,
            names=tuple(names),
            threads=tuple(threads),
            stacks=tuple(stacks),
            input_table=tuple(inputs),
            memory=_no_memory(),
            flows=self._flow_table(threads),
            collectives=(),
            info=TraceInfo(paths=("built.pt.trace.json",), devices=self.devices, distributed=self.distributed),
            problems=(),
        )

    def _flow_table(self, threads: dict[Thread, int]) -> FlowTable:
        start_ts, start, end_ts, end = zip(*self._flows, strict=True) if self._flows else ((), (), (), ())
        return FlowTable(
            kind=np.zeros(len(start), dtype=np.int8),
            kinds=("fwdbwd",),
            start_ts_ns=np.array([round(t * 1000) for t in start_ts], dtype=np.int64),
            start_thread=np.array([threads[t] for t in start], dtype=np.int32),
            end_ts_ns=np.array([round(t * 1000) for t in end_ts], dtype=np.int64),
            end_thread=np.array([threads[t] for t in end], dtype=np.int32),
        )


def row_of(trace: Trace, handle: int) -> int:
    """The row of the event that a builder's call answered."""
    return int(np.flatnonzero(trace.file_index == handle)[0])


def _no_memory() -> MemoryTable:
    none = np.empty(0, dtype=np.int64)
    return MemoryTable(none, none, none, none.astype(np.int32), none, none)
