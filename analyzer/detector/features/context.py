"""Where a window stands: phase, place in the step, the trace's character, the device, what its neighbours do."""

from __future__ import annotations

import numpy as np

from ...timeline.model import KernelClass, Phase, Vendor
from ...trace.model import FloatArray
from ..model import Feature
from .families import number
from .figures import NAN, among, known, log_count, pct, table
from .inputs import Kind
from .view import MATRIX, View

_K = KernelClass
_PHASES = tuple((phase.name.lower(), phase) for phase in Phase)
_COMPARED: tuple[tuple[str, str], ...] = (
    ("work_time", "compute time"),
    ("copy", "share of copies"),
    ("elementwise", "share of pointwise work"),
    ("call_cost", "host time of a call"),
    ("idle", "share of device idle time"),
)
_CLIP = 6.0

FEATURES: tuple[Feature, ...] = (
    *(Feature(f"context.{name}", "0 or 1", f"The window is of the phase: {name}.") for name, _ in _PHASES),
    Feature("context.position", "% of the step", "Where in its step the window begins."),
    Feature("context.trains", "0 or 1", "Whether the step has a backward pass or an optimizer."),
    Feature("context.data_share", "% of the step", "Host time in data loading."),
    Feature("context.backward_share", "% of the step", "Host time in the backward pass."),
    Feature("context.idle_share", "% of the step", "Device idle time; on the CPU time outside operators."),
    Feature("context.memcpy_share", "% of the step", "Device time in copies."),
    Feature("context.kernels", "1 (log10(1 + x))", "Device events of a step."),
    Feature("context.step_time", "log10 us", "Length of a step."),
    Feature(
        "context.half", "% of typed calls", "Calls of the trace on fp16 or bf16: whether it runs in mixed precision."
    ),
    Feature("context.tensor_core", "% of matrix time", "Matrix time of the trace on tensor cores."),
    Feature("context.history", "% of calls", "Calls of the trace that autograd numbers."),
    Feature("context.cpu", "0 or 1", "No accelerator."),
    Feature("context.amd", "0 or 1", "A device of AMD's."),
    Feature("context.capability", "major.minor", "Generation of the device; NaN where unknown."),
    Feature("context.half_over_fp32", "log10 1", "What half precision could gain."),
    Feature("context.tf32_over_fp32", "log10 1", "What TF32 could gain."),
    Feature("context.ridge", "log10 FLOP/byte", "Arithmetic for each byte from which the cores set the pace."),
    Feature("context.copies_before", "% of compute time", "Copies in the window before."),
    Feature("context.copies_after", "% of compute time", "Copies in the window behind."),
    Feature("context.matrix_before", "% of compute time", "Matrix work and convolutions in the window before."),
    Feature("context.matrix_after", "% of compute time", "Matrix work and convolutions in the window behind."),
    Feature(
        "context.idle_after", "% of device time and idle", "Device idle time in the window behind: after a wait here."
    ),
    Feature("context.scalars_after", "1 (log10(1 + x))", "Reads of scalars in the window behind."),
    *(
        Feature(
            f"context.{name}_deviation", "deviations", f"Its {what} against the windows of its phase (median, MAD)."
        )
        for name, what in _COMPARED
    ),
)


def compute(view: View) -> FloatArray:
    """Shape (windows, features)."""
    window, took_ns, _, work_class = view.work
    copies = pct(view.sum(window, took_ns * (work_class == _K.COPY)), view.work_ns)
    matrix = pct(view.sum(window, took_ns * among(work_class, MATRIX)), view.work_ns)
    pointwise = pct(view.sum(window, took_ns * (work_class == _K.ELEMENTWISE)), view.work_ns)
    idle = pct(_idle_ns(view), _idle_ns(view) + view.device_ns)
    calls = view.call_count
    compared = {
        "work_time": np.log10(1 + view.work_ns),
        "copy": copies,
        "elementwise": pointwise,
        "call_cost": known(view.has_ops, np.log10(1 + view.host_ns / np.maximum(calls, 1))),
        "idle": known(view.has_device, idle),
    }
    scalars = view.count(view.op_window[view.family == number("host scalar")])
    return table(
        FEATURES,
        **{name: (view.phase == phase).astype(np.float64) for name, phase in _PHASES},
        **_step(view),
        **_program(view),
        **_device(view),
        copies_before=_shifted(view, copies, -1),
        copies_after=_shifted(view, copies, 1),
        matrix_before=_shifted(view, matrix, -1),
        matrix_after=_shifted(view, matrix, 1),
        idle_after=known(view.has_device, _shifted(view, idle, 1)),
        scalars_after=known(view.has_ops, _shifted(view, log_count(scalars), 1)),
        **{f"{name}_deviation": _deviation(view, values) for name, values in compared.items()},
    )


def _idle_ns(view: View) -> FloatArray:
    """Device idle time that ends with each window's work."""
    gaps = view.timeline.idle
    window = np.append(view.windows.of, -1)[gaps.before]
    return view.sum(window[window >= 0], (gaps.end_ns - gaps.start_ns)[window >= 0])


def _step(view: View) -> dict[str, FloatArray | float]:
    """Columns about the window's step and the trace's usual one, by name."""
    steps, shares = view.timeline.steps, view.timeline.breakdown
    start = steps.start_ns[view.windows.step] if len(steps) else view.windows.start_ns
    return {
        "position": np.clip(100.0 * (view.windows.start_ns - start) / np.maximum(view.step_ns, 1), 0, 100),
        "data_share": shares.data_loading_pct,
        "backward_share": shares.backward_pct,
        "idle_share": shares.idle_pct,
        "memcpy_share": shares.memcpy_pct if view.has_device else NAN,
        "kernels": float(np.log10(1 + shares.kernels_per_step)) if view.has_device else NAN,
        "step_time": float(np.log10(max(shares.step_us, 0.1))),
    }


def _program(view: View) -> dict[str, FloatArray | float]:
    """Columns about the whole program, by name."""
    phases = view.phase
    kinds = view.input_facts.column("kind", view.call_rows)
    typed = int((kinds != Kind.UNKNOWN).sum())
    took_ns, work_class = view.trace.dur_ns[view.device], view.kernel_class
    matrix_ns = took_ns[among(work_class, MATRIX)].sum()
    on_tensor_cores = took_ns[among(work_class, (_K.GEMM_TENSOR_CORE, _K.CONV_TENSOR_CORE))].sum()
    tracked = view.trace.sequence[view.call_rows] >= 0
    return {
        "trains": float(among(phases, (Phase.BACKWARD, Phase.OPTIMIZER)).any()),
        "half": 100.0 * float((kinds == Kind.HALF).sum()) / typed if typed else NAN,
        "tensor_core": 100.0 * float(on_tensor_cores / matrix_ns) if matrix_ns else NAN,
        "history": 100.0 * float(tracked.mean()) if len(tracked) else NAN,
    }


def _device(view: View) -> dict[str, float]:
    """Columns about the device, by name."""
    device = view.timeline.device
    major, minor = device.capability
    fp32, half = device.fp32_tflops, device.half_tflops
    return {
        "cpu": float(device.is_cpu),
        "amd": float(device.vendor is Vendor.AMD),
        "capability": major + minor / 10 if major else NAN,
        "half_over_fp32": float(np.log10(half / fp32)),
        "tf32_over_fp32": float(np.log10(device.tf32_tflops / fp32)),
        "ridge": float(np.log10(np.fmax(half, fp32) * 1e3 / device.memory_gb_per_s)),
    }


def _shifted(view: View, values: FloatArray, by: int) -> FloatArray:
    """The value of the window that stands `by` places further on in the same step; NaN where there is none."""
    place = np.arange(view.size) + by
    inside = (place >= 0) & (place < view.size)
    place = np.clip(place, 0, max(view.size - 1, 0))
    return np.where(inside & (view.windows.step[place] == view.windows.step), values[place], NAN)


def _deviation(view: View, values: FloatArray) -> FloatArray:
    """How far each window's value lies from the median of its phase, in median absolute deviations, at most 6.

    Deviations count as at least a tenth of the median, so that alike windows do not blow up noise.
    """
    found = np.full(view.size, NAN)
    for phase in Phase:
        which = (view.phase == phase) & np.isfinite(values)
        if which.any():
            one = values[which]
            middle = np.sort(one)[len(one) // 2]
            spread = np.sort(np.abs(one - middle))[len(one) // 2]
            found[which] = np.clip((one - middle) / max(1.4826 * spread, 0.1 * abs(middle), 1e-3), -_CLIP, _CLIP)
    return found
