"""What recordings of jobs hold."""

from __future__ import annotations

from collections import Counter

import pytest

torch = pytest.importorskip("torch")

from bench.corpus.job import Job, Loading, Moment, Step, Transfer  # noqa: E402
from bench.corpus.running import record  # noqa: E402
from bench.corpus.simulator.document import Event, parse  # noqa: E402
from tests.bench.corpus.tiny import tiny_job  # noqa: E402


def events_of(job: Job) -> list[Event]:
    return [event for event in parse(record(job, steps=2, warm_up=1)).events if event.ph == "X"]


def names_of(job: Job) -> Counter[str]:
    return Counter(event.name for event in events_of(job))


def test_steps_are_marked_and_everything_is_recorded() -> None:
    events = events_of(tiny_job())
    steps = [event.name for event in events if event.name.startswith("ProfilerStep#")]
    assert sorted(steps) == ["ProfilerStep#1", "ProfilerStep#2"]
    assert {event.tid for event in events if event.cat == "cpu_op"} == {events[0].tid}, "one thread"
    names = Counter(event.name for event in events)
    assert names["aten::_scaled_dot_product_flash_attention_for_cpu"] == 2 * 3
    assert names["Optimizer.step#AdamW.step"] == 2
    assert any("bench/corpus/blocks.py" in event.name for event in events if event.cat == "python_function")
    assert any(event.args and event.args.dims for event in events if event.name == "aten::linear")


def test_micro_batches_are_run_before_one_step_of_the_optimizer() -> None:
    names = names_of(tiny_job(accumulate=3))
    assert names["aten::_log_softmax"] == 2 * 3
    assert names["Optimizer.step#AdamW.step"] == 2


def test_gradients_are_reduced_in_the_last_micro_step_and_beside_the_backward_pass() -> None:
    events = events_of(tiny_job(ranks=4, accumulate=2))
    reduced = [event for event in events if event.name.startswith("corpus.act allreduce")]
    nodes = [event for event in events if event.name == "torch::autograd::AccumulateGrad"]
    parameters = len(list(tiny_job().model.parameters()))
    assert len(nodes) == 2 * 2 * parameters
    assert 2 <= len(reduced) / 2 <= 8, "a few buckets each step"
    total_bytes = sum(int(event.name.split("bytes=")[1].split()[0]) for event in reduced)
    assert total_bytes == 2 * 4 * sum(parameter.numel() for parameter in tiny_job().model.parameters())
    assert all(any(node.ts <= one.ts < node.ts + node.dur for node in nodes) for one in reduced)


def test_each_micro_step_reduces_where_the_fault_wants_it() -> None:
    slug = "sync-every-micro-step"
    names = names_of(tiny_job(ranks=4, accumulate=2, settings={slug: "1"}))
    plain = names_of(tiny_job(ranks=4, accumulate=2))
    reduced, expected = (sum(n for name, n in one.items() if "allreduce" in name) for one in (names, plain))
    assert reduced == 2 * expected
    assert names[f"corpus.spoiled {slug}"] == expected
    assert not plain[f"corpus.spoiled {slug}"]


def test_a_loader_and_a_transfer_are_marked_with_their_fault() -> None:
    loading = Loading(from_memory=False, slug="dataloader-in-main-process")
    job = tiny_job(loading=loading, transfer=Transfer(pinned=False, blocking=True, slug="pageable-transfer"))
    names = names_of(job)
    assert names["enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"] == 2
    assert names["corpus.spoiled dataloader-in-main-process"] == names["corpus.spoiled pageable-transfer"] == 2
    assert names["corpus.act htod pinned=0 blocking=1"] == 2 * 2


def test_hooks_run_at_their_moments() -> None:
    job = tiny_job()
    seen: list[tuple[str, bool, bool]] = []
    for moment in Moment:
        job.hook(moment, lambda step, moment=moment: seen.append((moment.value, step.loss is not None, _graded(job))))
    record(job, steps=1, warm_up=0)
    assert seen == [
        ("before forward", False, False),
        ("after forward", True, False),
        ("after backward", True, True),
        ("after optimizer", True, True),
        ("end of step", True, False),
    ]


def _graded(job: Job) -> bool:
    return any(parameter.grad is not None for parameter in job.model.parameters())


@pytest.mark.parametrize("no_grad", [True, False])
def test_inference_runs_without_gradients_and_keeps_weights_in_half_precision(no_grad: bool) -> None:
    results: list[torch.Tensor] = []
    job = tiny_job(training=False, no_grad=no_grad, postprocess=lambda outputs: results.append(outputs))
    events = events_of(job)
    assert len(results) == 3
    assert results[-1].requires_grad != no_grad
    assert job.model.head.weight.dtype == torch.bfloat16
    assert not any("backward" in event.name.lower() for event in events if event.cat == "cpu_op")


def test_convolutions_run_in_channels_last_unless_the_job_says_no() -> None:
    for channels_last in (True, False):
        job = tiny_job(channels_last=channels_last)
        seen = []
        job.hook(Moment.AFTER_FORWARD, lambda step, seen=seen: seen.append(step.inputs[0].stride()[1] == 1))
        record(job, steps=1, warm_up=0)
        assert seen == [channels_last]


def test_settings_of_the_process_are_as_before() -> None:
    def spoil(step: Step) -> None:
        torch.autograd.set_detect_anomaly(True)
        torch.use_deterministic_algorithms(True, warn_only=True)
        raise ZeroDivisionError

    before = torch.backends.mha.get_fastpath_enabled(), torch.get_num_threads()
    job = tiny_job()
    job.hook(Moment.BEFORE_FORWARD, spoil)
    with pytest.raises(ZeroDivisionError):
        record(job, steps=1, warm_up=1)
    assert (torch.backends.mha.get_fastpath_enabled(), torch.get_num_threads()) == before
    assert not torch.is_anomaly_enabled()
    assert not torch.are_deterministic_algorithms_enabled()
