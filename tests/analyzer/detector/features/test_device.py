"""Features of the device's side: what runs, what it waits for, what is copied and exchanged."""

import numpy as np
import pytest

from tests.builders import TraceBuilder
from tests.patterns.scenes import layer, on_device
from torchtraceap.analyzer.trace.model import Category

from .reading import FLOAT, Reading


def test_cost_tells_classes_precision_and_alignment():
    def body(b):
        layer(b, "aten::mm", "ampere_sgemm_128x64_nn", kernel_us=100)
        layer(b, "aten::mm", "ampere_fp16_s16816gemm_fp16_64x64_align1_nn", kernel_us=300)
        layer(b, "aten::relu", "vectorized_elementwise_kernel", kernel_us=500)
        layer(b, "aten::conv2d", "nchwToNhwcKernel", kernel_us=100)

    told = Reading(on_device(body))
    assert told["cost.gemm"] == pytest.approx(40)
    assert told["cost.elementwise"] == pytest.approx(50)
    assert told["cost.layout"] == pytest.approx(10)
    assert told["cost.fp32"] == pytest.approx(25)
    assert told["cost.half"] == pytest.approx(75)
    assert told["cost.unaligned"] == pytest.approx(75)
    assert told["cost.kernel_longest_share"] == pytest.approx(50)
    assert told.count("cost.kernels") == 4
    assert told["cost.work_time"] == pytest.approx(3)


def test_double_and_naive_kernels_stand_out():
    def body(b):
        layer(b, "aten::conv2d", "naive_conv_nonpacked_fwd_nchw_float_double_float", kernel_us=100)
        layer(b, "aten::mm", "cutlass_80_tensorop_d884gemm_64x64", kernel_us=300)

    told = Reading(on_device(body))
    assert told["cost.fp64"] >= 75
    assert told["cost.naive"] == pytest.approx(25)
    assert told["cost.fft_or_direct"] == pytest.approx(100)


def test_launches_tell_tiny_kernels_and_held_up_calls():
    def body(b):
        for _ in range(9):
            layer(b, "aten::add", "vectorized_elementwise_kernel", us=10, kernel_us=2)
        b.device_work(
            Category.KERNEL, "vectorized_elementwise_kernel", us=50, launched=b.launch("cudaLaunchKernel", us=55)
        )

    told = Reading(on_device(body))
    assert told["launches.tiny"] == pytest.approx(90)
    assert told["launches.slow"] == pytest.approx(55, abs=1)
    assert told["launches.cost"] == pytest.approx(1)
    assert told["launches.latency"] <= 0


def test_slowness_is_against_the_traces_usual():
    def body(b):
        layer(b, "aten::add", "vectorized_elementwise_kernel", us=1000 if len(b._events) > 80 else 10)

    slow = Reading(on_device(body, steps=20)).every("launches.slowness")
    assert slow[0] == pytest.approx(0, abs=0.05)
    assert slow[-1] > 1


def test_idle_tells_causes_and_what_the_host_waited_in():
    def body(b):
        layer(b, "aten::mm", "sgemm", kernel_us=400)
        b.item()
        b.host(500)
        layer(b, "aten::mm", "sgemm", kernel_us=400)

    told = Reading(on_device(body))
    assert told["idle.sync"] + told["idle.host_bound"] > 20
    assert told["idle.sync"] > 0
    assert told.count("idle.syncs") == 2
    assert told["idle.scalar_syncs"] == pytest.approx(50)
    assert told["idle.bare_syncs"] == pytest.approx(50)
    assert told.count("idle.device_syncs") == 1
    assert told.count("operators.host_scalar_calls") == 2
    assert told["idle.caused"] > 0


def test_transfers_tell_direction_memory_and_size():
    def body(b):
        with b.op("aten::copy_", shapes=[(8, 3, 64, 64), (8, 3, 64, 64)], types=[FLOAT, FLOAT]):
            b.copy("HtoD (Pageable -> Device)", us=50, size_bytes=8 * 3 * 64 * 64 * 4)
        b.copy("HtoD (Pinned -> Device)", us=5, size_bytes=100)
        b.copy("DtoH (Device -> Pinned)", us=5, size_bytes=100)
        b.synchronize("cudaStreamSynchronize", stream=7)
        layer(b, "aten::mm", "sgemm", kernel_us=40)

    told = Reading(on_device(body))
    assert told.count("transfers.htod") == 2
    assert told.count("transfers.dtoh") == 1
    assert told.count("transfers.small") == 2
    assert told["transfers.pageable_htod"] == pytest.approx(50)
    assert told["transfers.pageable_dtoh"] == 0
    assert told["transfers.blocking"] == pytest.approx(100 / 3)
    assert told["transfers.float_images"] == pytest.approx(100)
    assert told["transfers.htod_time"] == pytest.approx(55)
    assert told["transfers.index_htod"] == 0


def test_an_index_that_lies_on_the_host():
    def body(b):
        with b.op("aten::index"):
            with b.op("aten::to"), b.op("aten::_to_copy"), b.op("aten::copy_"):
                b.copy("HtoD (Pageable -> Device)", us=5, size_bytes=100)
            b.kernel("index_elementwise_kernel", us=20)

    assert Reading(on_device(body)).count("transfers.index_htod") == 1


def test_waits_for_a_size_that_depends_on_the_data():
    def body(b):
        with b.op("aten::index"), b.op("aten::nonzero"):
            b.kernel("DeviceSelectSweepKernel", us=20)
            b.copy("DtoH (Device -> Pinned)", us=2, size_bytes=8)
            b.synchronize("cudaStreamSynchronize", stream=7)

    assert Reading(on_device(body))["idle.shape_syncs"] == pytest.approx(50)


def test_work_left_on_the_host_and_constants_made_there():
    def body(b):
        b.leaf("aten::arange", us=10)
        b.leaf("aten::bincount", us=300)
        layer(b, "aten::mm", "sgemm", kernel_us=40)

    told = Reading(on_device(body))
    assert told.count("transfers.host_constants") == 1
    assert told["transfers.host_work"] > 50


def test_communication_tells_what_nothing_hides():
    def body(b):
        layer(b, "aten::mm", "sgemm", kernel_us=500)
        with b.op("c10d::allreduce_", shapes=[((1000,),)]):
            b.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", us=200, stream=20)
        with b.op("c10d::allreduce_", shapes=[((1000,),)]):
            b.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", us=1000, stream=20)

    told = Reading(on_device(body))
    assert told.count("communication.collectives") == 2
    assert 50 < told["communication.exposed"] < 90
    assert told["communication.small"] == pytest.approx(100)
    assert told["communication.same_size"] == pytest.approx(50)
    assert told["communication.devices"] == 1


def test_a_trace_of_one_process_has_no_communication():
    told = Reading(on_device(lambda b: layer(b, "aten::mm", "sgemm")))
    assert told["communication.collectives"] == 0
    assert told["communication.exposed"] == 0


def test_compiled_regions_and_their_kernels():
    def body(b):
        with b.op("Torch-Compiled Region: 0/3"):
            b.kernel("triton_poi_fused_add_0", us=50)
        layer(b, "aten::add", "vectorized_elementwise_kernel", kernel_us=50)

    told = Reading(on_device(body))
    assert told.count("compilation.regions") == 1
    assert told.count("compilation.recompilations") == 3
    assert told["compilation.triton"] == pytest.approx(50)
    assert told["compilation.by_graph"] == 0
    assert told["compilation.eager_calls"] == pytest.approx(50)


def test_trials_of_kernels_are_seen_in_the_step_they_run_in():
    steps = iter(range(10))

    def body(b):
        first = next(steps) == 2
        with b.op("aten::cudnn_convolution"):
            for name in ("sgemm_a", "sgemm_b", "sgemm_c") if first else ("sgemm_a",):
                b.kernel(name, us=50)

    told = Reading(on_device(body, steps=5))
    trials = told.every("compilation.matrix_names")
    assert np.argmax(trials) == 2
    assert told.every("compilation.one_step_kernels")[2] == pytest.approx(100 * 2 / 3)


def test_the_devices_own_numbers():
    told = Reading(on_device(lambda b: layer(b, "aten::mm", "sgemm")))
    assert told["context.capability"] == pytest.approx(8.0)
    assert told["context.half_over_fp32"] == pytest.approx(np.log10(312 / 19.5))
    assert told["context.cpu"] == 0


def test_graph_launches_count_as_one_call():
    b = TraceBuilder()
    with b.frame("train.py(1): main"):
        for number in range(4):
            with b.step(number):
                call = b.launch("cudaGraphLaunch")
                for _ in range(4):
                    b.device_work(Category.KERNEL, "triton_poi_fused_0", us=20, launched=call)
                b.synchronize()
    told = Reading(b.build())
    assert told["compilation.by_graph"] == pytest.approx(100)
    assert told.count("cost.kernels") == 4
