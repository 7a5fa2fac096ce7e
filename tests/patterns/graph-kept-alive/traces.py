import pytest

from tests.patterns.recorded import record
from torchtraceap.analyzer.trace.model import Trace


def _recorded(keep, *, profile_memory: bool = True) -> Trace:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    stages = [torch.nn.Sequential(torch.nn.Conv2d(8, 8, 3, padding=1), torch.nn.ReLU()) for _ in range(8)]
    net, images = torch.nn.Sequential(*stages), torch.rand(4, 8, 64, 64)
    kept: list[object] = []
    return record(lambda: keep(net, images, kept), profile_memory=profile_memory)


def positive_recorded_outputs_kept() -> Trace:
    return _recorded(lambda net, images, kept: kept.append(net(images).mean((2, 3))))


def positive_recorded_graph_retained() -> Trace:
    def keep(net, images, kept) -> None:
        loss = net(images).square().mean()
        loss.backward(retain_graph=True)
        kept.append(loss)

    return _recorded(keep)


def negative_detached() -> Trace:
    return _recorded(lambda net, images, kept: kept.append(net(images).mean((2, 3)).detach()))


def negative_loss_kept_after_its_backward_pass() -> Trace:
    """The backward pass has let everything go that the graph held: a list of losses grows by bytes."""

    def keep(net, images, kept) -> None:
        loss = net(images).square().mean()
        loss.backward()
        kept.append(loss)

    return _recorded(keep)


def negative_results_kept_on_purpose() -> Trace:
    """Each step's output stays, and nothing behind it: one large piece a step."""
    return _recorded(lambda net, images, kept: kept.append(net(images).detach().clone()))


def negative_without_memory_records() -> Trace:
    def keep(net, images, kept) -> None:
        net(images).square().mean().backward()

    return _recorded(keep, profile_memory=False)
