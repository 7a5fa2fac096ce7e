"""What all groups of features ask of a trace: rows by window, sums over them, the scales figures are told in."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TypeVar

import numpy as np

from ...timeline.columns import is_named, number_by_name
from ...timeline.model import KernelClass, Phase, Timeline
from ...timeline.tree import enclosing
from ...trace.model import NONE, BoolArray, Category, FloatArray, Int32Array, IntArray, OpInputs
from ..model import Windows
from . import families
from .figures import NAN, median_by
from .inputs import InputFacts
from .marks import Mark, marks_of

T = TypeVar("T")
_NO_ROWS = np.empty(0, dtype=np.int64)


class View:
    """A timeline seen by windows. Rows are rows of the trace, those of the windows only, in order of time."""

    def __init__(self, timeline: Timeline, windows: Windows) -> None:
        self.timeline = timeline
        self.windows = windows
        self.trace = timeline.trace
        self.size = len(windows)
        self._decoded: dict[int, OpInputs] = {}

    # Rows

    def _rows(self, *categories: Category) -> IntArray:
        rows = self.trace.rows(*categories)
        return rows[self.windows.of[rows] != NONE]

    @cached_property
    def ops(self) -> IntArray:
        """Operators."""
        return self._rows(Category.CPU_OP)

    @cached_property
    def op_window(self) -> Int32Array:
        """The window of each of `ops`."""
        return self.windows.of[self.ops]

    @cached_property
    def family(self) -> IntArray:
        """The place in `families.FAMILIES` of each of `ops`."""
        return self.by_name(self.ops, families.family_of)

    @cached_property
    def device(self) -> IntArray:
        """Kernels, copies and fills."""
        rows = self.timeline.device_rows
        return rows[self.windows.of[rows] != NONE]

    @cached_property
    def device_window(self) -> Int32Array:
        """The window of each of `device`."""
        return self.windows.of[self.device]

    @cached_property
    def kernel_class(self) -> IntArray:
        """`KernelClass` of each of `device`."""
        return self.timeline.kernel_class[self.device].astype(np.int64)

    @cached_property
    def runtime(self) -> IntArray:
        """Calls of the device's runtime or driver."""
        return self._rows(Category.RUNTIME)

    @cached_property
    def frames(self) -> IntArray:
        """Python frames."""
        return self._rows(Category.PYTHON_FUNCTION)

    @cached_property
    def _outer_op(self) -> Int32Array:
        """Shape (n + 1,): the innermost operator round each row, itself left out; NONE if none, and for no row."""
        parent = self.timeline.tree.parent
        return np.append(np.where(parent == NONE, NONE, self.timeline.tree.op[parent]), NONE).astype(np.int32)

    @cached_property
    def outermost_op(self) -> Int32Array:
        """Shape (n,): the outermost operator of the chain of calls round each row, itself counted; NONE if none."""
        is_top = np.zeros(len(self.trace), dtype=np.bool_)
        is_top[self.ops] = self._outer_op[self.ops] == NONE
        return enclosing(self.timeline.tree.parent, is_top)

    @cached_property
    def _is_call(self) -> BoolArray:
        outer = self._outer_op[self.ops]
        wraps = np.zeros(len(self.trace) + 1, dtype=np.bool_)
        wraps[self.ops] = self.family == families.number("grouped by autograd")
        wraps[NONE] = True
        return wraps[outer] & ~wraps[self.ops]

    @cached_property
    def calls(self) -> IntArray:
        """Places in `ops` of what Python or the autograd engine called, in order of window and time."""
        places = np.flatnonzero(self._is_call)
        return places[np.argsort(self.op_window[places], kind="stable")]

    @cached_property
    def call_rows(self) -> IntArray:
        """The row of each of `calls`."""
        return self.ops[self.calls]

    @cached_property
    def call_window(self) -> Int32Array:
        """The window of each of `calls`."""
        return self.op_window[self.calls]

    @cached_property
    def call_family(self) -> IntArray:
        """The family of each of `calls`."""
        return self.family[self.calls]

    @cached_property
    def call_count(self) -> FloatArray:
        """Calls of each window."""
        return self.count(self.call_window)

    def are_of(self, family: IntArray, *names: str) -> BoolArray:
        """For each family number, whether it is one of the families named."""
        return families.chosen(names)[family]

    def outer_family(self, rows: IntArray) -> IntArray:
        """The family of the innermost operator round each of `rows` (host rows), itself left out; NONE if none."""
        return self._family_of_row[self._outer_op[rows]]

    def outermost_family(self, rows: IntArray) -> IntArray:
        """The family of what Python called round each of `rows` (host rows; NONE for no row); NONE if unknown."""
        return self._family_of_row[np.append(self.outermost_op, NONE)[rows]]

    @cached_property
    def _family_of_row(self) -> IntArray:
        of = np.full(len(self.trace) + 1, NONE, dtype=np.int64)
        of[self.ops] = self.family
        return of

    @cached_property
    def marks(self) -> IntArray:
        """Operators, annotations and Python frames."""
        return self._rows(Category.CPU_OP, Category.USER_ANNOTATION, Category.PYTHON_FUNCTION)

    @cached_property
    def _marks_of_name(self) -> IntArray:
        """Flags of `Mark` of every name that operators, annotations and frames have."""
        table = np.zeros(len(self.trace.names), dtype=np.int64)
        names = np.bincount(self.trace.name[self.marks], minlength=len(table))
        for name in np.flatnonzero(names).tolist():
            table[name] = marks_of(self.trace.names[name])
        return table

    def marked(self, rows: IntArray, mark: Mark) -> BoolArray:
        """For each of `rows` (operators, annotations, frames), whether its name has a mark."""
        return (self._marks_of_name & mark).astype(np.bool_)[self.trace.name[rows]]

    def with_mark(self, mark: Mark) -> IntArray:
        """Those of `marks` whose name has a mark."""
        wanted = (self._marks_of_name & mark).astype(np.bool_)
        return self.marks[wanted[self.trace.name[self.marks]]] if wanted.any() else _NO_ROWS

    # What a trace tells

    @property
    def has_device(self) -> bool:
        """Whether there is device work at all."""
        return len(self.timeline.device_rows) > 0

    @cached_property
    def has_ops(self) -> bool:
        """Whether operators were recorded."""
        return len(self.ops) > 0

    @cached_property
    def has_shapes(self) -> bool:
        """Whether inputs of operators were recorded."""
        return bool((self.trace.inputs[self.ops] >= 0).any())

    @cached_property
    def has_frames(self) -> bool:
        """Whether Python frames were recorded."""
        return len(self.frames) > 0

    @property
    def has_launches(self) -> bool:
        """Whether calls of the device's runtime were recorded."""
        return len(self.runtime) > 0 and self.has_device

    # Times of windows

    @cached_property
    def host_ns(self) -> FloatArray:
        """Host span of each window; of a trace with device events only, its device span."""
        return (self.windows.end_ns - self.windows.start_ns).astype(np.float64)

    @cached_property
    def device_ns(self) -> FloatArray:
        """Summed device time of each window."""
        return self.sum(self.device_window, self.trace.dur_ns[self.device])

    @cached_property
    def work(self) -> tuple[Int32Array, FloatArray, IntArray, IntArray]:
        """The pieces of compute time: window, ns, family and class of each.

        With a device these are its kernels and copies; on the CPU the operators' own time.
        """
        if self.has_device:
            launching = self.timeline.launches.op[self.device]
            family = np.maximum(self._family_of_row[launching], 0)
            return self.device_window, self.trace.dur_ns[self.device].astype(np.float64), family, self.kernel_class
        own = self.timeline.tree.self_ns[self.ops].astype(np.float64)
        return self.op_window, own, self.family, _CLASS_OF_FAMILY[self.family]

    @cached_property
    def work_ns(self) -> FloatArray:
        """Compute time of each window: device time, on the CPU the operators'."""
        return self.sum(self.work[0], self.work[1])

    @cached_property
    def step_ns(self) -> FloatArray:
        """Duration of each window's step."""
        duration = self.timeline.steps.duration_ns
        return duration[self.windows.step].astype(np.float64) if len(duration) else np.full(self.size, NAN)

    @cached_property
    def phase(self) -> IntArray:
        """`Phase` of each window: that of most of its operators, in a trace of device events of most of those."""
        rows = self.ops if self.has_ops else self.device
        phase = self.timeline.phase[rows].astype(np.int64)
        votes = np.bincount(self.windows.of[rows] * len(Phase) + phase, minlength=self.size * len(Phase))
        return votes.reshape(self.size, len(Phase)).argmax(axis=1)

    # Sums

    def count(self, window: Int32Array | IntArray) -> FloatArray:
        """How many of the things, whose windows are given, each window has."""
        return np.bincount(window, minlength=self.size).astype(np.float64)

    def sum(self, window: Int32Array | IntArray, values: np.ndarray) -> FloatArray:
        """Sum of the things' values by window."""
        return np.bincount(window, weights=values, minlength=self.size).astype(np.float64, copy=False)

    def largest(self, window: Int32Array | IntArray, values: np.ndarray) -> FloatArray:
        """The largest of the things' values (0 or more) by window; 0 where there is none."""
        found = np.zeros(self.size)
        # Of two types it takes several times as long.
        np.maximum.at(found, window, values.astype(np.float64, copy=False))
        return found

    def median_ns(self, window: Int32Array | IntArray, took_ns: IntArray) -> FloatArray:
        """The median of times by window; NaN where there is none."""
        return median_by(window, took_ns, self.size)

    # Facts of names and inputs

    def by_name(self, rows: IntArray, fact: Callable[[str], int]) -> IntArray:
        """A number for each of `rows` by its name."""
        return number_by_name(self.trace, rows, fact)

    def named(self, rows: IntArray, pattern: re.Pattern[str]) -> BoolArray:
        """For each of `rows`, whether `pattern` finds its name."""
        return is_named(self.trace, rows, pattern.search)

    def inputs(self, index: int) -> OpInputs:
        """One entry of the table of inputs, decoded once; empty for NONE."""
        if index not in self._decoded:
            self._decoded[index] = self.trace.input_table[index] if index >= 0 else OpInputs()
        return self._decoded[index]

    @cached_property
    def input_facts(self) -> InputFacts:
        """What recorded inputs say, by call."""
        return InputFacts(self.trace, self.inputs)

    def facts(self, rows: IntArray, fact: Callable[[str, OpInputs], Sequence[float]], width: int) -> FloatArray:
        """Shape (rows, width): numbers by name and inputs of each row; every distinct pair is asked once."""
        if not len(rows):
            return np.empty((0, width))
        stride = len(self.trace.input_table) + 1
        keys = self.trace.name[rows].astype(np.int64) * stride + self.trace.inputs[rows] + 1
        pairs, at = np.unique(keys, return_inverse=True)
        names = self.trace.names
        told = [fact(names[key // stride], self.inputs(key % stride - 1)) for key in pairs.tolist()]
        return np.array(told, dtype=np.float64).reshape(len(pairs), width)[at.ravel()]


_CLASS_OF_FAMILY = np.array([int(family.work) for family in families.FAMILIES])
MATRIX = (KernelClass.GEMM_TENSOR_CORE, KernelClass.GEMM_SIMT, KernelClass.CONV_TENSOR_CORE, KernelClass.CONV_SIMT)
