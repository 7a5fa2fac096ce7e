"""Phases, and backward work charged to its forward operator."""

from tests.builders import TraceBuilder, row_of
from torchtraceap.analyzer.timeline.launches import build_launches
from torchtraceap.analyzer.timeline.model import Phase
from torchtraceap.analyzer.timeline.phases import find_forward_ops, find_marks, find_phases
from torchtraceap.analyzer.timeline.steps import find_steps
from torchtraceap.analyzer.timeline.tree import build_tree
from torchtraceap.analyzer.trace.model import NONE

LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def meaning_of(b: TraceBuilder):
    trace = b.build()
    tree = build_tree(trace)
    launches = build_launches(trace, tree)
    marks = find_marks(trace)
    forward_op = find_forward_ops(trace, tree, launches, marks)
    phase = find_phases(trace, tree, launches, find_steps(trace, tree, launches), marks, forward_op)
    return (
        lambda handle: Phase(phase[row_of(trace, handle)]),
        lambda handle: None if (row := forward_op[row_of(trace, handle)]) == NONE else int(trace.file_index[row]),
    )


def backward(b: TraceBuilder, name: str, sequence: int):
    """One autograd node; answers the handles of the operator inside it and of its kernel."""
    with (
        b.op(f"autograd::engine::evaluate_function: {name}", sequence=sequence),
        b.op(name, sequence=sequence),
        b.op("aten::mm") as op,
    ):
        return op, b.kernel("gemm", us=5)


def test_a_training_step_without_stacks():
    b = TraceBuilder()
    with b.step(0):
        with b.annotation(LOADER), b.op("aten::stack") as stack:
            pass
        with b.op("aten::to", sequence=10) as moved:
            b.copy(us=5)
        with b.op("aten::linear", sequence=10) as linear, b.op("aten::addmm", sequence=10) as addmm:
            forward_kernel = b.kernel("gemm", us=5)
        loss = b.leaf("aten::mse_loss", sequence=11)
        seed = b.leaf("aten::ones_like")
        with b.thread(2):
            mm, backward_kernel = backward(b, "MseLossBackward0", 11)
            addmm_backward, _ = backward(b, "AddmmBackward0", 10)
            hook = b.leaf("c10d::allreduce_")
        with b.annotation("Optimizer.step#SGD.step"), b.op("aten::add_", sequence=12) as update:
            update_kernel = b.kernel("add", us=5)
        with b.annotation("Optimizer.zero_grad#SGD.zero_grad"):
            zero = b.leaf("aten::zero_", sequence=12)
    phase, forward = meaning_of(b)
    assert phase(stack) == Phase.DATA
    assert [phase(h) for h in (linear, addmm, forward_kernel, loss)] == [Phase.FORWARD] * 4
    assert [phase(h) for h in (mm, backward_kernel, addmm_backward, hook)] == [Phase.BACKWARD] * 4
    assert [phase(h) for h in (update, update_kernel, zero)] == [Phase.OPTIMIZER] * 3
    assert [phase(h) for h in (moved, seed)] == [Phase.OTHER] * 2
    assert [forward(h) for h in (mm, backward_kernel)] == [loss, loss]
    assert forward(addmm_backward) == addmm, "the last operator that saw the number took it"
    assert [forward(h) for h in (linear, update, forward_kernel)] == [None] * 3


def test_backward_on_the_same_thread_and_the_next_steps_numbers():
    b = TraceBuilder()
    with b.op("aten::linear", sequence=5) as first:
        pass
    _, kernel = backward(b, "AddmmBackward0", 5)
    with b.op("aten::linear", sequence=5) as second:
        pass
    _, next_kernel = backward(b, "AddmmBackward0", 5)
    phase, forward = meaning_of(b)
    assert [forward(kernel), forward(next_kernel)] == [first, second]
    assert phase(kernel) == Phase.BACKWARD


def test_forward_run_again_inside_backward_is_its_own():
    b = TraceBuilder()
    with b.op("aten::conv2d", sequence=7) as forward_conv:
        pass
    with b.thread(2), b.op("autograd::engine::evaluate_function: CheckpointFunctionBackward", sequence=7):
        plain = b.leaf("aten::mul")
        with b.op("aten::relu", sequence=0) as again:
            again_kernel = b.kernel("relu", us=5)
        inner, _ = backward(b, "ReluBackward0", 0)
    phase, forward = meaning_of(b)
    assert forward(plain) == forward_conv
    assert (forward(again), forward(again_kernel)) == (None, None)
    assert forward(inner) == again
    assert phase(again) == Phase.BACKWARD


def test_arrows_tell_forward_threads_apart():
    b = TraceBuilder()
    ends = []
    for thread in (2, 3):
        with b.thread(thread), b.op("aten::linear", sequence=1) as op:
            pass
        ends.append(op)
    kernels = []
    for op in ends:
        with (
            b.thread(9),
            b.op("autograd::engine::evaluate_function: AddmmBackward0", sequence=1),
            b.op("AddmmBackward0", sequence=1) as node,
        ):
            kernels.append(b.kernel("gemm", us=5))
        b.flow(op, node)
    _, forward = meaning_of(b)
    assert [forward(k) for k in kernels] == ends


def test_inference_is_forward_by_its_modules_or_all_of_it():
    b = TraceBuilder()
    before = b.leaf("aten::div")
    with b.frame("nn.Module: ViT_0"):
        inside = b.leaf("aten::linear")
    phase, _ = meaning_of(b)
    assert [phase(before), phase(inside)] == [Phase.OTHER, Phase.FORWARD]

    b = TraceBuilder()
    alone = b.leaf("aten::linear")
    phase, _ = meaning_of(b)
    assert phase(alone) == Phase.FORWARD


def test_frames_name_the_phases_where_annotations_do_not():
    b = TraceBuilder()
    with b.frame("torch/utils/data/dataloader.py(628): __next__"):
        loaded = b.leaf("aten::stack")
    with b.frame("torch/optim/adamw.py(200): step"):
        update = b.leaf("aten::lerp_")
    with b.frame("<built-in method run_backward of torch._C._EngineBase object at 0x7f>"):
        seed = b.leaf("aten::ones_like")
    phase, _ = meaning_of(b)
    assert [phase(h) for h in (loaded, update, seed)] == [Phase.DATA, Phase.OPTIMIZER, Phase.BACKWARD]
