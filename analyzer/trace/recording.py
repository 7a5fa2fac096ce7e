"""What `torchtraceap record` writes beside a trace: exact lines, the model, versions, flags, source hashes.

The file stands next to its trace and is named after it: `run.pt.trace.json.gz` has `run.pt.trace.torchtraceap.json`.
It is data from outside like any trace: whatever cannot be used counts as not said.
"""

from __future__ import annotations

import stat
from pathlib import Path

import msgspec

SUFFIX = ".torchtraceap.json"
DEVICE = "device"
"""Key of the driver's figures in `Recording.counters`."""
MODULE_TAG = "torchtraceap.module "
"""How ranges round module calls begin in the trace: `torchtraceap.module layer1.0.conv1 model.py:34`, the path in the
model (`.` for the model itself) and the line that put the module there."""
FORMAT = 1
"""Raised when an older reader would misread the file."""
_TRACE_SUFFIXES = (".json", ".json.gz")
_MOST_BYTES = 256 << 20


class RecordedParameter(msgspec.Struct, frozen=True):
    """A parameter or buffer of one module itself."""

    name: str
    shape: tuple[int, ...] = ()
    dtype: str = ""
    is_trainable: bool = True
    is_buffer: bool = False


class RecordedModule(msgspec.Struct, frozen=True):
    """One module of the model as it was when recorded."""

    path: str
    """As in `named_modules()`; "" for the root. Where several models ran, the first part is the model's own name."""
    class_name: str
    origin: str = ""
    """The class's dotted name: `torch.nn.modules.conv.Conv2d`."""
    file: int = -1
    """Index into `Recording.files` of the file that defines the class's `forward`; -1 if none does."""
    line: int = 0
    """The line that defines `forward`."""
    defined_file: int = -1
    """Index into `Recording.files` of the file that put the module into its parent; -1 if unknown, as for a root."""
    defined_line: int = 0
    """The line that did: `self.conv1 = nn.Conv2d(...)`, or the call of a container around it."""
    parameters: tuple[RecordedParameter, ...] = ()
    arguments: dict[str, str] = {}
    """What the module says of itself (`extra_repr`), by name: `kernel_size` -> `(3, 3)`."""
    inputs: tuple[tuple[int, ...], ...] = ()
    """Shapes of the tensors of its last call, those that went in."""
    outputs: tuple[tuple[int, ...], ...] = ()
    calls_per_step: float = 0.0
    feeds: tuple[str, ...] = ()
    """Paths of the modules that were given one of its outputs."""


class ExactLines(msgspec.Struct, frozen=True):
    """The line that was being executed at each event, in columns of one length; `file` indexes `Recording.files`."""

    id: tuple[int, ...] = ()
    file: tuple[int, ...] = ()
    line: tuple[int, ...] = ()


class Precision(msgspec.Struct, frozen=True):
    """Numeric switches in force while recording; None where the program has no such switch."""

    matmul_tf32: bool | None = None
    cudnn_tf32: bool | None = None
    cudnn_benchmark: bool | None = None
    cudnn_deterministic: bool | None = None
    float32_matmul_precision: str = ""
    autocast: str = ""
    """The dtype that autocast was on with; "" if it was off."""


class LaunchCounters(msgspec.Struct, frozen=True):
    """Hardware counters of kernel launches in the order of launch, in columns; null for what was not measured."""

    kernels: tuple[str, ...] = ()
    """Distinct kernel names."""
    kernel: tuple[int, ...] = ()
    """For each launch, index into `kernels`."""
    metrics: tuple[str, ...] = ()
    """CUPTI's names: `dram__bytes_read.sum`."""
    values: tuple[tuple[float | None, ...], ...] = ()
    """By metric, each with one figure per launch."""


class OperatorTotal(msgspec.Struct, frozen=True):
    """What one operator or kernel took in the light steps."""

    name: str
    on_device: bool = False
    calls_per_step: float = 0.0
    self_us_per_step: float = 0.0
    """Without what other operators took inside it."""


class Recording(msgspec.Struct, frozen=True):
    """The whole file."""

    format: int = FORMAT
    version: str = ""
    """Of torchtraceap."""
    command: tuple[str, ...] = ()
    folder: str = ""
    """The working folder; relative `files` start there."""
    started_ns: int = 0
    """Unix time."""
    python_version: str = ""
    torch_version: str = ""
    cuda_version: str = ""
    cudnn_version: str = ""
    device: str = ""
    rank: int = -1
    world_size: int = 1
    precision: Precision = Precision()
    environment: dict[str, str] = {}
    """The variables that change how torch runs, where set."""
    steps_by: str = ""
    """What parts the steps: "optimizer" or "module"; "" if none was seen."""
    warm_up_steps: int = 0
    light_step_us: tuple[float, ...] = ()
    """Duration of every step recorded without stacks."""
    plain_step_us: tuple[float, ...] = ()
    """Duration of steps with no profiler at all, for the overhead."""
    full_step_us: tuple[float, ...] = ()
    light_operators: tuple[OperatorTotal, ...] = ()
    """Over all light steps, the longest first."""
    files: tuple[str, ...] = ()
    sources: dict[str, str] = {}
    """File -> git blob hash (hex) of its content when recorded."""
    python_lines: ExactLines = ExactLines()
    """By "Python id" of a Python event: the line of its *caller* that was being executed."""
    operator_lines: ExactLines = ExactLines()
    """By "External id" of an operator: the line of the program's own code that was being executed."""
    modules: tuple[RecordedModule, ...] = ()
    counters: dict[str, dict[str, float]] = {}
    """`DEVICE` -> figure -> value, as sampled while recording; see docs/counters.md."""
    launches: LaunchCounters = LaunchCounters()
    """Hardware counters of kernel launches, measured in steps of their own."""
    notes: tuple[str, ...] = ()
    """What could not be recorded, and why."""


def is_trace_name(name: str) -> bool:
    """Whether a file of this name can be a trace, by its ending."""
    return name.endswith(_TRACE_SUFFIXES) and not name.endswith(SUFFIX)


def recording_path(trace: Path) -> Path:
    """Where the file beside `trace` stands."""
    return trace.with_name(trace.name.removesuffix(".gz").removesuffix(".json") + SUFFIX)


def read_recording(trace: Path) -> tuple[Recording | None, str]:
    """The recording beside `trace` (None if there is none of use) and what is wrong with it ("" if nothing)."""
    path = recording_path(trace)
    try:
        info = path.stat()
        if not stat.S_ISREG(info.st_mode):
            return None, f"{path.name} is no regular file; it was not read"
        if info.st_size > _MOST_BYTES:
            return None, f"{path.name} is larger than {_MOST_BYTES:,} bytes; it was not read"
        recording = msgspec.json.decode(path.read_bytes(), type=Recording)
    except FileNotFoundError:
        return None, ""
    except OSError as error:
        return None, f"{path.name} cannot be read: {error.strerror or error}"
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return None, f"{path.name} is no recording of torchtraceap: {error}"
    if recording.format > FORMAT:
        return None, f"{path.name} was written by a newer torchtraceap (format {recording.format}); it was not read"
    return recording, ""


def write_recording(trace: Path, recording: Recording) -> Path:
    """Write the file beside `trace`, at once as a whole; its path. Raises OSError."""
    path = recording_path(trace)
    part = path.with_name(path.name + ".part")
    part.write_bytes(msgspec.json.encode(recording))
    part.replace(path)
    return path
