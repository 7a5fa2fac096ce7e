"""Features of the host's side: operators, memory, Python, counters, and what stands round a window."""

from dataclasses import replace

import numpy as np
import pytest

from tests.builders import TraceBuilder
from tests.patterns.scenes import layer, on_cpu, on_device
from torchtraceap.analyzer.detector.features import families
from torchtraceap.analyzer.detector.features.marks import Mark, marks_of
from torchtraceap.analyzer.trace.counters import CounterTable
from torchtraceap.analyzer.trace.model import NONE, MemoryTable

from .reading import Reading


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("aten::conv2d", "convolution"),
        ("aten::cudnn_convolution_backward_input", "convolution backward"),
        ("ConvolutionBackward0", "grouped by autograd"),
        ("autograd::engine::evaluate_function: AddmmBackward0", "grouped by autograd"),
        ("torch::autograd::AccumulateGrad", "grouped by autograd"),
        ("aten::_slow_conv2d_forward", "fallback convolution"),
        ("aten::addmm", "linear"),
        ("aten::add_", "arithmetic"),
        ("aten::_foreach_addcdiv_", "foreach"),
        ("aten::_fused_adamw_", "fused optimizer"),
        ("torchvision::nms", "non-maximum suppression"),
        ("torchvision::roi_align", "region of interest"),
        ("aten::zero_", "zero"),
        ("aten::fill_", "fill"),
        ("aten::_local_scalar_dense", "host scalar"),
        ("aten::_scaled_dot_product_attention_math", "math attention"),
        ("aten::_scaled_dot_product_flash_attention", "fused attention"),
        ("aten::upsample_bilinear2d", "interpolation"),
        ("c10d::allreduce_", "communication"),
        ("Torch-Compiled Region: 0/0", "compiled region"),
        ("my_library::unheard_of", "other"),
    ],
)
def test_families_of_operators(name, family):
    assert families.FAMILIES[families.family_of(name)].name == family


def test_every_word_of_a_family_finds_it():
    for index, family in enumerate(families.FAMILIES):
        for word in family.words.split():
            assert families.family_of(f"aten::{word}") == index, word


def test_marks_of_names():
    assert marks_of("aten::add_") == Mark.ADDITION | Mark.IN_PLACE_STEP
    assert marks_of("<built-in method item of Tensor object at 0x7f>") == Mark.TO_PYTHON
    assert marks_of("train.py(3): additem") == 0
    assert marks_of("torch/_compile.py(24): inner") == 0


def test_operators_by_family_on_the_cpu():
    def body(b):
        with b.op("aten::contiguous", us=10), b.op("aten::clone", us=10):
            b.leaf("aten::copy_", us=80)
        b.leaf("aten::silu_", us=100)

    told = Reading(on_cpu(body))
    assert told["operators.activation_time"] == pytest.approx(50)
    assert told["cost.copy"] == pytest.approx(50)
    assert told.count("operators.calls") == 2
    assert told.count("operators.copy_calls") == 1


def test_clones_before_in_place_activations():
    def body(b):
        b.leaf("aten::clone")
        b.leaf("aten::silu_")
        b.leaf("aten::clone")
        b.leaf("aten::relu")

    assert Reading(on_cpu(body)).count("operators.cloned_activations") == 1


def test_memory_filled_as_soon_as_it_is_allocated():
    def body(b):
        with b.op("aten::empty"):
            b.leaf("aten::fill_")
        b.leaf("aten::empty")

    assert Reading(on_cpu(body))["operators.filled_allocations"] == 50


def test_history_that_no_backward_pass_uses():
    def body(b):
        b.leaf("aten::mul", sequence=len(b._events))
        b.leaf("aten::add")

    told = Reading(on_cpu(body))
    assert told["operators.with_history"] == 50
    assert told["operators.history_unused"] == 50


def test_forward_operators_in_a_backward_pass():
    def body(b):
        forward = b.leaf("aten::linear", sequence=7)
        with b.thread(2), b.op("autograd::engine::evaluate_function: CheckpointFunctionBackward", sequence=7) as node:
            b.leaf("aten::linear")
            b.leaf("aten::mm")
        b.flow(forward, node)

    told = Reading(on_cpu(body))
    assert told["operators.forward_in_backward"] == pytest.approx(100 / 3)
    assert told["operators.history_unused"] == 0


def test_python_outside_operators_and_by_source():
    def body(b):
        with b.frame("PIL/Image.py(100): open", us=300):
            b.leaf("aten::mul", us=100)
        b.call("<built-in method item of Tensor object at 0x7f>", us=100)
        b.host(500)

    told = Reading(on_cpu(body))
    span = 1020
    assert told["python.images"] == pytest.approx(100 * 300 / span, abs=1)
    assert told["python.waiting"] == pytest.approx(100 * 100 / span, abs=1)
    assert told["python.outside_ops"] == pytest.approx(100 * 920 / span, abs=1)
    assert told["python.longest_outside"] == pytest.approx(np.log10(760), abs=0.01)
    assert told.count("python.to_host_calls") == 1


def test_loading_in_the_main_process():
    def body(b):
        with b.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", us=500):
            pass
        b.leaf("aten::mul", us=480)

    told = Reading(on_cpu(body))
    assert told["python.loading"] == pytest.approx(50)
    assert told["python.loading_here"] == pytest.approx(50)


def with_memory(trace, ts_us, sizes, totals):
    count = len(ts_us)
    return replace(
        trace,
        memory=MemoryTable(
            ts_ns=np.array(ts_us, dtype=np.int64) * 1000,
            address=np.arange(count, dtype=np.int64),
            size_bytes=np.array(sizes, dtype=np.int64),
            device=np.zeros(count, dtype=np.int32),
            total_allocated_bytes=np.array(totals, dtype=np.int64),
            total_reserved_bytes=np.full(count, 20 << 30, dtype=np.int64),
        ),
    )


def test_memory_that_is_kept_grows_from_step_to_step():
    trace = on_cpu(lambda b: b.leaf("aten::mul", us=980), steps=5)
    assert trace.ts_ns[1] == 0
    moments = [1000 * step + at for step in range(5) for at in (100, 200, 300)]
    sizes = [1 << 20, 3 << 20, -(3 << 20)] * 5
    totals = np.cumsum(sizes)
    told = Reading(with_memory(trace, moments, sizes, totals))
    assert told.count("memory.allocations") == 2
    assert told["memory.bytes"] == pytest.approx(np.log10(4 << 20), abs=0.01)
    assert told["memory.kept"] == pytest.approx(25)
    assert told["memory.growth"] == pytest.approx(100 / 8)


def test_calls_of_the_driver_for_memory():
    def body(b):
        b.launch("cudaFree", us=50)
        b.launch("cudaMalloc", us=50)
        layer(b, "aten::mul", "vectorized_elementwise_kernel")

    told = Reading(on_device(body))
    assert told.count("memory.driver_mallocs") == 1
    assert told.count("memory.driver_frees") == 1
    assert np.isnan(told["memory.bytes"])


def test_counters_where_they_were_recorded():
    trace = on_device(lambda b: layer(b, "aten::mm", "sgemm", kernel_us=100))
    table = CounterTable(
        source="ncu",
        kernels=("sgemm",),
        kernel=np.zeros(1, dtype=np.int32),
        position=np.full(1, NONE, dtype=np.int64),
        metrics=("dram__bytes.sum", "lts__t_sector_hit_rate.pct"),
        values=np.array([[1e6, 80.0]]),
    )
    told = Reading(replace(trace, counters=table))
    assert told["counters.l2_hits"] == pytest.approx(80)
    assert told["counters.dram_bytes"] == pytest.approx(6, abs=0.01)
    assert told["counters.dram_rate"] == pytest.approx(100 * 1e6 / 100e3 / 1555)
    assert np.isnan(told["counters.tensor"])


def halves(timeline):
    """Two windows a step, parted in the middle of its host span."""
    from .reading import step_windows

    whole = step_windows(timeline)
    trace, middle = timeline.trace, (whole.start_ns + whole.end_ns) // 2
    host = np.where(timeline.launches.runtime != NONE, timeline.launches.runtime, np.arange(len(trace)))
    late = trace.ts_ns[host] >= middle[whole.of]
    return replace(
        whole,
        start_ns=np.stack([whole.start_ns, middle], 1).ravel(),
        end_ns=np.stack([middle, whole.end_ns], 1).ravel(),
        step=np.repeat(whole.step, 2),
        region=np.tile(np.arange(2, dtype=np.int32), len(whole)),
        of=np.where(whole.of == NONE, NONE, 2 * whole.of + late).astype(np.int32),
    )


def test_neighbours_and_places_in_the_step():
    def body(b):
        layer(b, "aten::copy_", "copy_kernel", us=500, kernel_us=100)
        layer(b, "aten::mm", "sgemm", us=500, kernel_us=100)

    told = Reading(on_device(body), halves)
    assert told.every("context.copies_before")[1::2] == pytest.approx(100)
    assert np.isnan(told.every("context.copies_before")[::2]).all()
    assert told.every("context.matrix_after")[::2] == pytest.approx(100)
    assert told.every("context.position")[1::2] == pytest.approx(50, abs=1)
    assert told.every("context.trains") == pytest.approx(0)


def test_phases_are_told_apart():
    b = TraceBuilder(devices=())
    with b.frame("train.py(1): main"):
        for number in range(4):
            with b.step(number):
                b.leaf("aten::linear", us=100)
                with b.annotation("Optimizer.step#SGD.step"):
                    for _ in range(5):
                        b.leaf("aten::add_", us=10)
    told = Reading(b.build())
    assert told["context.optimizer"] == 1
    assert told["context.trains"] == 1
    assert told.count("repetition.longest_run") == 5
    assert told["operators.in_place_steps"] == pytest.approx(100 * 5 / 6)
