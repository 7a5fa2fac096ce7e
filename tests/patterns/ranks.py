"""Traces of several ranks of one job, played side by side: a collective ends on all ranks when the last one has come.

def body(b: TraceBuilder, rank: int, step: int) -> Iterator[Exchange]:
    layer(b, "aten::conv2d", "sgemm", kernel_us=1000 + 500 * (rank == 3))
    yield Exchange(us=200)

traces = play_ranks(body, ranks=4)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

from torchtraceap.analyzer.trace.model import Category, Collective, DeviceProperties, Distributed, Trace

from ..builders import A100, TraceBuilder, row_of
from .scenes import MAIN

COMMUNICATION_STREAM = 20


@dataclass(frozen=True)
class Exchange:
    """A collective that all ranks ask for next; it takes `us` from when the last of them has come."""

    name: str = "all_reduce"
    us: float = 200.0
    elements: int = 1 << 20

    @property
    def operator(self) -> str:
        return f"c10d::{self.name.replace('all_', 'all')}_"  # c10d::allreduce_, c10d::broadcast_

    @property
    def kernel(self) -> str:
        word = "".join(part.capitalize() for part in self.name.split("_"))
        return f"ncclDevKernel_{word}_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


Body = Callable[[TraceBuilder, int, int], Iterator[Exchange]]


def play_ranks(
    body: Body,
    *,
    ranks: int = 4,
    steps: int = 4,
    device: DeviceProperties = A100,
    frames: Sequence[str] = (MAIN,),
    clock_us: Sequence[float] = (),
) -> list[Trace]:
    """The trace of each rank. `body` plays one step of one rank and yields the collectives it takes part in.

    The host waits for the device at the end of each step. `clock_us` says how far each rank's clock is ahead.
    """
    builders = [TraceBuilder(devices=(device,)) for _ in range(ranks)]
    said: list[list[tuple[int, Exchange]]] = [[] for _ in builders]
    for rank, b in enumerate(builders):
        b.distributed = Distributed("nccl", rank, ranks)
        b.host(clock_us[rank] if clock_us else 0.0)
    ahead = [clock_us[rank] if clock_us else 0.0 for rank in range(ranks)]
    plays = [_play(b, rank, body, steps, frames) for rank, b in enumerate(builders)]
    while any(exchanges := [next(play, None) for play in plays]):
        assert len(set(exchanges)) == 1, "every rank takes part in every collective"
        exchange = exchanges[0]
        assert exchange is not None
        for held, handle in zip(said, _exchange(builders, ahead, exchange), strict=True):
            held.append((handle, exchange))
    return [
        _with_collectives(b.build(), held, rank, ranks)
        for rank, (b, held) in enumerate(zip(builders, said, strict=True))
    ]


def ddp_forward(b: TraceBuilder, kernels_us: Sequence[float], *, operator: str = "aten::conv2d") -> None:
    """The forward pass of a model wrapped in DistributedDataParallel."""
    with b.frame("nn.Module: DistributedDataParallel_0"), b.annotation("DistributedDataParallel.forward", us=10):
        for us in kernels_us:
            b.leaf(operator, us=10, kernel="ampere_scudnn_128x64_relu", kernel_us=us)


def _play(b: TraceBuilder, rank: int, body: Body, steps: int, frames: Sequence[str]) -> Iterator[Exchange]:
    with ExitStack() as stack:
        for frame in frames:
            stack.enter_context(b.frame(frame))
        for number in range(steps):
            with b.step(number, us=20):
                yield from body(b, rank, number)
                b.synchronize()


def _exchange(builders: Sequence[TraceBuilder], ahead: Sequence[float], exchange: Exchange) -> list[int]:
    """Launch the collective on every rank and let it end everywhere at once; the operators' handles."""
    with ExitStack() as stack:
        handles, launches = [], []
        for b in builders:
            stack.enter_context(b.op(exchange.operator, us=10))
            handles.append(stack.enter_context(b.op("record_param_comms", us=10)))
            launches.append(b.launch())
        # A communication stream waits for the work that made what is exchanged.
        ready = [max(b.cursor, *b.stream_free.values(), 0.0) - clock for b, clock in zip(builders, ahead, strict=True)]
        end = max(ready) + exchange.us
        for b, launched, start, clock in zip(builders, launches, ready, ahead, strict=True):
            b.stream_free[COMMUNICATION_STREAM] = start + clock
            b.device_work(
                Category.KERNEL, exchange.kernel, us=end - start, launched=launched, stream=COMMUNICATION_STREAM
            )
    return handles


def _with_collectives(trace: Trace, said: Sequence[tuple[int, Exchange]], rank: int, ranks: int) -> Trace:
    collectives = tuple(
        Collective(row_of(trace, handle), one.name.replace("_", ""), one.elements, one.elements, "Float", ranks, "0")
        for handle, one in said
    )
    info = replace(trace.info, paths=(f"rank{rank}.pt.trace.json",))
    return replace(trace, collectives=collectives, info=info)
