"""Faults round the model: what they add is recorded inside their marks, and settings spoil what they say."""

from __future__ import annotations

import copy
import random
import re

import numpy as np
import pytest
import torch

from bench.corpus.cleaning import take_out, without_overhead
from bench.corpus.fault import all_controls, all_faults
from bench.corpus.simulator import simulate
from tests.bench.corpus.faults.loop_jobs import Recording, bare_job, injected, make_job
from tests.builders import A100, V100, TraceBuilder
from torchtraceap.analyzer.timeline.build import build_timeline

SHOWN = {
    "allocator-retry": r"^corpus\.act empty_cache$",
    "blocking-transfer": r"^corpus\.act htod pinned=1 blocking=1$",
    "buffers-broadcast": r"^corpus\.act broadcast ",
    "built-on-host-then-moved": r"^corpus\.act htod pinned=0 blocking=1$",
    "cache-emptied-in-loop": r"^corpus\.act empty_cache$|^<built-in function collect>$",
    "data-dependent-shape": r"^aten::(nonzero|masked_select|_unique2|repeat_interleave)$",
    "dataloader-in-main-process": r"^enumerate\(DataLoader\)#_SingleProcessDataLoaderIter\.__next__$",
    "dataloader-starved": r"^enumerate\(DataLoader\)#_MultiProcessingDataLoaderIter\.__next__$",
    "explicit-synchronize": r"^corpus\.act synchronize$",
    "grad-scaler-stall": r"^aten::_amp_foreach_non_finite_check_and_unscale_$",
    "graph-kept-alive": r"^aten::stack$",
    "host-augmentation": r"^corpus\.host$",
    "host-scalar-read": r"^aten::(_local_scalar_dense|is_nonzero)$",
    "host-tensor-index": r"^aten::index$",
    "many-small-transfers": r"^corpus\.act (htod|dtoh) ",
    "metric-on-host": r"^corpus\.act dtoh ",
    "needless-checkpointing": r"^aten::conv2d$",
    "numpy-on-the-way": r"^<built-in function ascontiguousarray>|moveaxis$",
    "pageable-transfer": r"^corpus\.act htod pinned=0 ",
    "per-parameter-ema": r"^aten::(mul_|lerp_|copy_|sub_)$",
    "per-parameter-grad-scan": r"^aten::(linalg_vector_norm|isfinite|abs)$",
    "redundant-collective": r"^corpus\.act allreduce bytes=4 async=0$",
    "single-tensor-optimizer": r"^Optimizer\.step#",
    "sync-batchnorm-chatter": r"^corpus\.act allreduce bytes=(64|68) async=0$",
    "sync-every-micro-step": r"^corpus\.act allreduce ",
    "wide-dtype-transfer": r"^aten::_to_copy$",
    "work-between-steps": r"^corpus\.act dtoh |tempfile\.py",
    "workers-respawned": r"multiprocessing/process\.py\(\d+\): start$",
    "zero-grad-to-zero": r"^aten::(zero_|_foreach_zero_)$",
}
"""What is inside of the fault's marks, whatever its style."""
SETTINGS = (
    *("fp32-without-autocast", "tf32-off", "launch-bound", "cudnn-autotune-off", "cudnn-autotune-thrash"),
    *("exposed-allreduce", "autograd-in-eval", "debug-mode-left-on", "float64-leak"),
)
"""Tested one by one below."""
FAULTS = sorted((*SHOWN, *SETTINGS))
NEEDS_MORE = {
    *("allocator-retry", "buffers-broadcast", "cudnn-autotune-off", "cudnn-autotune-thrash", "host-augmentation"),
    *("needless-checkpointing", "per-parameter-ema", "per-parameter-grad-scan", "single-tensor-optimizer"),
    *("sync-batchnorm-chatter", "wide-dtype-transfer", "zero-grad-to-zero"),
}
"""Faults that have no room in a model of one parameter that is given numbers."""
NEEDS_TRAINING = {
    *("exposed-allreduce", "grad-scaler-stall", "graph-kept-alive", "redundant-collective", "sync-every-micro-step"),
}
"""Faults that have room in it only if it trains."""
CONTROLS = [
    control for control in all_controls() if control.apply.__module__.rsplit(".", 1)[-1].replace("_", "-") in FAULTS
]


@pytest.mark.parametrize("slug", sorted(SHOWN))
def test_what_a_fault_adds_is_recorded_inside_its_marks(slug):
    fault = all_faults()[slug]
    for seed in range(2):
        job = injected(fault, training=True, seed=seed)
        assert job is not None
        assert any(re.search(SHOWN[slug], event.name) for event in Recording(job, steps=2).inside(slug))


@pytest.mark.parametrize("slug", FAULTS)
def test_every_style_runs(slug):
    fault = all_faults()[slug]
    for seed in range(10, 12):
        job = injected(fault, training=bool(seed % 2), seed=seed)
        if job is not None:
            assert Recording(job).count("^ProfilerStep") == 1


@pytest.mark.parametrize("training", [False, True])
def test_nothing_changes_where_there_is_no_room(training):
    without_room = set(FAULTS)
    for slug in FAULTS:
        for seed in range(6):
            job = bare_job(training)
            before = copy.copy(vars(job)) | {"loading": copy.copy(job.loading), "transfer": copy.copy(job.transfer)}
            if all_faults()[slug].apply(job, random.Random(seed)):
                without_room.discard(slug)
            else:
                assert vars(job) == before
                assert "forward" not in vars(job.model)
                assert not job.hooks and not job.settings
    assert without_room == (NEEDS_MORE if training else NEEDS_MORE | NEEDS_TRAINING)


def test_a_batch_is_loaded_and_sent_in_one_wrong_way_only():
    for slug in ("dataloader-in-main-process", "dataloader-starved"):
        job = injected(all_faults()["dataloader-starved"], training=True, seed=0)
        assert job is not None and not all_faults()[slug].apply(job, random.Random(1))
        assert job.loading.slug == "dataloader-starved"
    for slug in ("pageable-transfer", "blocking-transfer", "wide-dtype-transfer"):
        job = injected(all_faults()["pageable-transfer"], training=True, seed=0)
        assert job is not None and not all_faults()[slug].apply(job, random.Random(1))
        assert job.transfer.slug == "pageable-transfer" and job.transfer.prepare is None


@pytest.mark.parametrize("control", CONTROLS, ids=lambda control: control.name)
def test_controls_run_and_mark_nothing(control):
    applied = 0
    for training in (False, True):
        job = make_job(training)
        if control.apply(job, random.Random(training)):
            applied += 1
            assert not Recording(job).is_marked
    assert applied


def test_there_are_enough():
    assert len(FAULTS) >= 28 and len(CONTROLS) >= 12


# ---- how much, and what exactly


def test_checkpointed_blocks_are_marked_only_when_they_run_again():
    job = injected(all_faults()["needless-checkpointing"], training=True, seed=3)
    assert job is not None
    recording = Recording(job)
    again = sum(event.name == "aten::convolution" for event in recording.inside("needless-checkpointing"))
    assert 1 <= again <= 4
    assert recording.count("^aten::convolution$") == 4 + again


def test_an_unfused_optimizer_takes_operators_for_each_parameter():
    healthy, job = make_job(True), injected(all_faults()["single-tensor-optimizer"], training=True, seed=1)
    assert job is not None
    parameters = len(list(job.model.parameters()))
    inside = [event for event in Recording(job).inside("single-tensor-optimizer") if event.name.startswith("aten::")]
    assert len(inside) >= 3 * parameters
    assert Recording(healthy).count(r"^aten::_foreach_") > 0


def test_doubles_leak_into_layers_or_the_loss():
    styles = set()
    for seed in range(6):
        job = injected(all_faults()["float64-leak"], training=True, seed=seed)
        assert job is not None
        inside = Recording(job).inside("float64-leak")
        assert any("double" in event.types for event in inside)
        styles.add(any(event.name in ("aten::conv2d", "aten::linear") for event in inside))
    assert styles == {False, True}


def test_gradients_are_reduced_in_every_micro_step_only_by_fault():
    fault = all_faults()["sync-every-micro-step"]
    job, control = injected(fault, training=True, seed=0), make_job(True)
    assert job is not None
    controls = [one for one in CONTROLS if one.name == "accumulation with no_sync"]
    assert controls[0].apply(control, random.Random(0))
    assert Recording(job).count("^corpus.act allreduce") == job.accumulate * Recording(control).count(
        "^corpus.act allreduce"
    )


def test_one_bucket_or_an_exchange_for_each_parameter():
    styles = set()
    for seed in range(8):
        job = injected(all_faults()["exposed-allreduce"], training=True, seed=seed)
        assert job is not None
        exchanges = Recording(job).count("^corpus.act allreduce")
        assert exchanges in (1, len(list(job.model.parameters())))
        styles.add(exchanges)
    assert len(styles) == 2


# ---- what settings spoil


class Choosing(random.Random):
    """Chooses one style wherever it may."""

    def __init__(self, style):
        super().__init__(0)
        self.style = style

    def choice(self, seq):
        return self.style if self.style in seq else super().choice(seq)


def names_of(timeline, rows):
    return {timeline.trace.name_of(row) for row in np.flatnonzero(rows).tolist()}


def test_kept_gradients_spoil_the_additions_to_them(tmp_path):
    fault = all_faults()["zero-grad-to-zero"]
    job = injected(fault, training=True, seed=0)
    assert job is not None
    spoiled = fault.spoils(timeline := Recording(job).timeline(tmp_path))
    assert names_of(timeline, spoiled) == {"aten::add_"}
    assert spoiled.sum() == len(list(job.model.parameters()))
    assert not fault.spoils(Recording(make_job(True)).timeline(tmp_path)).any()


def test_debug_modes_spoil_their_checks(tmp_path):
    fault = all_faults()["debug-mode-left-on"]
    for style, shown in (("anomaly", "aten::_is_any_true"), ("fill", "aten::fill_"), ("assert", "aten::isnan")):
        job = make_job(True)
        assert fault.apply(job, Choosing(style))
        recording = Recording(job)
        timeline = recording.timeline(tmp_path)
        marked = {event.name for event in recording.inside(fault.slug)}
        assert shown in names_of(timeline, fault.spoils(timeline)) | marked
    timeline = Recording(make_job(True)).timeline(tmp_path)
    assert not fault.spoils(timeline).any()


def test_inference_with_autograd_spoils_its_forward_pass(tmp_path):
    fault = all_faults()["autograd-in-eval"]
    job = injected(fault, training=False, seed=0)
    assert job is not None and not job.no_grad
    timeline = Recording(job).timeline(tmp_path)
    assert "aten::conv2d" in names_of(timeline, fault.spoils(timeline))
    teacher = injected(fault, training=True, seed=0)
    assert teacher is not None
    recording = Recording(teacher)
    assert sum(event.name == "aten::convolution" for event in recording.inside(fault.slug)) == 4
    assert not fault.spoils(recording.timeline(tmp_path)).any()


def test_a_second_backward_pass_is_spoiled_on_the_thread_that_runs_it():
    job = make_job(True)
    assert all_faults()["graph-kept-alive"].apply(job, Choosing(1))
    taken_out = take_out(simulate(without_overhead(Recording(job).document), "A100", job, seed=0), "tiny")
    marked = [part for part in taken_out.spoiled if part.slug == "graph-kept-alive"]
    main = next(part for part in marked if part.end_ns == max(one.end_ns for one in marked))
    others = [part for part in marked if part.tid != main.tid]
    assert len(others) == 1
    assert others[0].end_ns - others[0].start_ns > 0.5 * (main.end_ns - main.start_ns)


def device_timeline(*kernels, device=A100, us=500.0):
    """Three steps of a linear layer's operator with these kernels each."""
    builder = TraceBuilder(devices=[device])
    for number in range(3):
        with builder.step(number):
            for kernel in kernels:
                with builder.op("aten::addmm" if "gemm" in kernel else "aten::cudnn_convolution"):
                    builder.kernel(kernel, us=us)
            with builder.op("aten::relu"):
                builder.kernel("vectorized_elementwise_kernel<4, relu>", us=us)
            builder.synchronize()
    return build_timeline(builder.build())


PLAIN = "ampere_sgemm_128x64_tn"
TF32 = "sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x64x16_stage4_warpsize2x2x1_tensor16x8x8_kernel"
HALF = "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x3_tn"


@pytest.mark.parametrize(
    ("slug", "device", "kernel", "is_spoiled"),
    [
        ("fp32-without-autocast", A100, PLAIN, False),
        ("fp32-without-autocast", A100, TF32, True),
        ("fp32-without-autocast", V100, "volta_sgemm_128x64_tn", True),
        ("fp32-without-autocast", A100, HALF, False),
        ("tf32-off", A100, PLAIN, True),
        ("tf32-off", A100, TF32, False),
        ("tf32-off", V100, "volta_sgemm_128x64_tn", False),
        ("cudnn-autotune-off", A100, "void implicit_convolve_sgemm<float, float, 128, 5, 5, 3, 3, 3, 1>", True),
        ("cudnn-autotune-off", A100, "sm80_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc", False),
    ],
)
def test_precision_and_autotuning_spoil_kernels_with_their_operators(slug, device, kernel, is_spoiled):
    timeline = device_timeline(kernel, device=device)
    found = names_of(timeline, all_faults()[slug].spoils(timeline))
    operator = "aten::addmm" if "gemm" in kernel and "convolve" not in kernel and "xmma_fprop" not in kernel else None
    if is_spoiled:
        assert kernel in found and (operator is None or operator in found)
    assert bool(found) == is_spoiled
    assert "aten::relu" not in found


def test_short_kernels_are_launch_bound_only_where_the_device_waits():
    spoils = all_faults()["launch-bound"].spoils
    short, long = device_timeline(HALF, HALF, us=3), device_timeline(HALF, HALF, us=3000)
    assert HALF in names_of(short, spoils(short))
    assert not spoils(long).any()


def test_operators_that_try_many_kernels_are_spoiled():
    builder = TraceBuilder(devices=[A100])
    for number in range(3):
        with builder.step(number):
            with builder.op("aten::cudnn_convolution"):
                for tile in range(6):
                    builder.kernel(f"sm80_xmma_fprop_implicit_gemm_bf16_tilesize{tile}", us=50)
            with builder.op("aten::convolution_backward"):
                for kind in ("dgrad", "wgrad"):
                    builder.kernel(f"sm80_xmma_{kind}_implicit_gemm_bf16", us=50)
    timeline = build_timeline(builder.build())
    assert names_of(timeline, all_faults()["cudnn-autotune-thrash"].spoils(timeline)) == {
        "aten::cudnn_convolution",
        *(f"sm80_xmma_fprop_implicit_gemm_bf16_tilesize{tile}" for tile in range(6)),
    }


def test_settings_reach_the_job():
    faults = all_faults()
    assert injected(faults["launch-bound"], True, 0).batch_multiplier == 1
    assert injected(faults["fp32-without-autocast"], True, 0).autocast is None
    off = injected(faults["tf32-off"], True, 0)
    assert off.autocast is None and not off.tf32
    assert not injected(faults["cudnn-autotune-off"], True, 0).cudnn_benchmark
    thrash = injected(faults["cudnn-autotune-thrash"], True, 0)
    sizes = {tuple(torch.as_tensor(size).tolist()) for size in sizes_seen(thrash)}
    assert len(sizes) >= 3 and "cudnn-autotune-thrash" in thrash.settings


def sizes_seen(job):
    """Sizes of the first layer's inputs over six calls."""
    seen = []
    job.model.blocks.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0].shape[-2:]))
    image = torch.stack([job.make_sample(number)[0] for number in range(2)])
    for _ in range(6):
        job.forward(job.model, (torch.nn.functional.interpolate(image, (64, 64)),))
    return seen
