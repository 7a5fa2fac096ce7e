"""Counters joined to kernels, and what is told of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from tests.builders import TraceBuilder
from tests.shared import shared_timeline
from torchtraceap.analyzer.analysis import analyze
from torchtraceap.analyzer.assess import price_all
from torchtraceap.analyzer.timeline.build import build_timeline
from torchtraceap.analyzer.timeline.counter_evidence import counter_evidence
from torchtraceap.analyzer.timeline.counters import Figure, base_name, counted, kernel_counters, kernel_key
from torchtraceap.analyzer.timeline.model import Timeline
from torchtraceap.analyzer.timeline.roofline import place
from torchtraceap.analyzer.trace.counters import Measured, to_table
from torchtraceap.analyzer.trace.model import Category

READ, WRITTEN, TENSOR = "dram__bytes_read.sum", "dram__bytes_write.sum", "sm__inst_executed_pipe_tensor.sum"
SHAPES = [(512, 512), (512, 512)]


def timeline(launches: Sequence[Measured], source: str = "ncu", steps: int = 3) -> Timeline:
    """Three steps of two products by the same kernel and an addition."""
    b = TraceBuilder()
    for number in range(steps):
        with b.step(number):
            for us in (100, 40):
                with b.op("aten::mm", shapes=SHAPES, types=("float", "float")):
                    b.kernel("void gemm<(int)4, true>(float*, int)", us=us)
            with b.op("aten::add", shapes=SHAPES, types=("float", "float")):
                b.kernel("void at::native::elementwise<4>(int)", us=10)
            b.synchronize()
    return build_timeline(replace(b.build(), counters=to_table(source, launches)))


def products(*megabytes: float) -> list[Measured]:
    return [Measured("gemm<4, (bool)1>(T1 *, int)", {READ: mb * 1e6, WRITTEN: 0.0, TENSOR: mb}) for mb in megabytes]


def dram_mb(line: Timeline) -> list[float]:
    return (counted(line).values[:, Figure.DRAM_BYTES] / 1e6).tolist()


def test_as_many_launches_as_a_step_has_are_joined_in_order() -> None:
    assert dram_mb(timeline(products(7, 3))) == [7, 3] * 3


def test_launches_of_several_steps_are_averaged_place_by_place() -> None:
    assert dram_mb(timeline(products(6, 3, 8, 5))) == [7, 4] * 3


def test_any_other_number_of_launches_gives_the_mean() -> None:
    assert dram_mb(timeline(products(6, 3, 9))) == [6] * 6


def test_bare_names_are_joined_only_in_order() -> None:
    bare = [replace(one, kernel="gemm") for one in products(7, 3, 2)]
    assert dram_mb(timeline(bare[:2])) == [7, 3] * 3
    assert dram_mb(timeline(bare)) == []


def test_kernels_that_were_not_measured_have_none() -> None:
    line = timeline([Measured("some_other_kernel", {READ: 1.0, WRITTEN: 1.0})])
    assert len(counted(line).rows) == 0
    (row,) = kernel_counters(line)
    assert (row.launches, row.dram_bytes) == (1, 2.0)
    assert np.isnan(row.us_per_step)


def test_the_table_has_rates_by_the_time_in_the_trace() -> None:
    (row,) = kernel_counters(timeline(products(7, 3)))
    assert (row.launches, row.us_per_step) == (2, 140)
    assert row.dram_gb_per_s == pytest.approx(5e6 / 70e3)
    assert row.tensor_instructions == 5


def test_measured_bytes_take_the_place_of_modelled_ones() -> None:
    plain, counted_line = timeline([]), timeline(products(7, 3))
    before, after = place(plain), place(counted_line)
    ops = plain.trace.rows_named(("aten::mm",))[:2]
    flops = 2 * 512**3
    assert before.intensity[ops].tolist() == pytest.approx([flops / (3 * 512 * 512 * 4)] * 2)
    assert after.intensity[ops].tolist() == pytest.approx([flops / 7e6, flops / 3e6])
    add = plain.trace.rows_named(("aten::add",))[:1]
    assert after.intensity[add].tolist() == before.intensity[add].tolist()


def test_evidence_needs_counters_of_all_the_kernels() -> None:
    line = timeline(products(7, 3))
    ops = line.trace.rows_named(("aten::mm",))
    found = {one.id: one for one in counter_evidence(line, ops)}
    assert (found["dram"].value, found["dram"].unit) == (10.0, "MB")
    assert found["tensor-cores"].value == 10
    assert len(found["dram"].events) == 2
    assert counter_evidence(line, np.concatenate([ops, line.trace.rows_named(("aten::add",))])) == ()
    assert counter_evidence(timeline([]), ops) == ()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
            "at::detail::Array<char*, 3> >(int, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3>)",
            "void at::native::vectorized_elementwise_kernel<(int)4, at::native::CUDAFunctor_add<float>, "
            "at::detail::Array<char *, (int)3>>(int, T2, T3)",
        ),
        (
            "void at::native::(anonymous namespace)::pool<float, true>(int)",
            "void at::native::<unnamed>::pool<float, (bool)1>(int)",
        ),
        ("k<16ul>(int)", "k<(unsigned long)16>(T1)"),
        ("ampere_sgemm_128x64_nn", "ampere_sgemm_128x64_nn"),
        (
            "f<g::{lambda(int)#1}>(int)",
            "f<g::[lambda(int) (instance 1)]>(T1)",
        ),
    ],
)
def test_names_by_different_unmanglers_are_one(one: str, other: str) -> None:
    assert kernel_key(one) == kernel_key(other)


def test_names_of_different_kernels_stay_apart() -> None:
    assert kernel_key("k<4>(int)") != kernel_key("k<8>(int)")
    assert kernel_key("f<g::{lambda(int)#1}>(int)") != kernel_key("f<g::{lambda(int)#2}>(int)")
    assert base_name("void at::native::(anonymous namespace)::pool<float, true>(int)") == "pool"


def test_ranges_of_a_real_trace_belong_to_the_operators_that_launched_them() -> None:
    line = shared_timeline("traces/S18_hta_cupti_counters_alexnet.json.gz")
    found = counted(line)
    assert len(found.rows) == 77
    flops: dict[str, float] = {}
    for row, value in zip(found.rows.tolist(), found.values[:, Figure.FLOPS].tolist(), strict=True):
        name = line.trace.name_of(int(line.launches.op[row]))
        flops[name] = flops.get(name, 0.0) + value
    # The classifier of AlexNet: 9216 x 4096, 4096 x 4096 and 4096 x 1000 on 128 images, twice.
    linear = 2 * 2 * 128 * (9216 * 4096 + 4096 * 4096 + 4096 * 1000)
    assert flops["aten::addmm"] == pytest.approx(linear, rel=0.05)
    assert flops["aten::clamp_min_"] == 0
    names = [row.kernel for row in kernel_counters(line)]
    assert "(kernel not named)" in names
    assert len(names) == 16


def test_findings_cite_the_counters_of_their_kernels() -> None:
    trace = shared_timeline("traces/S01_kineto_resnet50_w0_v100.json.gz").trace
    names = sorted({trace.name_of(row) for row in trace.rows(Category.KERNEL).tolist()})
    told = {READ: 1e6, WRITTEN: 5e5, "lts__t_sector_hit_rate.pct": 50.0}
    found = price_all(analyze(replace(trace, counters=to_table("ncu", [Measured(name, told) for name in names]))))
    (clears,) = [finding for finding in found if finding.slug == "zero-grad-to-zero"]
    said = {one.id: one for one in clears.evidence}
    assert said["dram"].value == pytest.approx(1.5 * len(said["dram"].events))
    assert said["l2"].value == 50
    assert not any(one.id == "dram" for finding in price_all(analyze(trace)) for one in finding.evidence)
