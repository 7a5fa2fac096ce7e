"""What functions and layers are said to show as, against torch itself."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from torchtraceap.codemap.sequence.shows import Shown, fast_path, shown_by_function, shown_by_layer

torch = pytest.importorskip("torch")
F, nn = torch.nn.functional, torch.nn

_X, _V, _Y = torch.rand(2, 8, 16, 16), torch.rand(2, 10, 16), torch.rand(2, 8)
_LABELS, _EYE = torch.tensor([1, 2]), torch.eye(3)

_FUNCTIONS: dict[str, Callable[[], object]] = {
    "cross_entropy": lambda: F.cross_entropy(_Y, _LABELS),
    "nll_loss": lambda: F.nll_loss(_Y, _LABELS),
    "mse_loss": lambda: F.mse_loss(_Y, _Y),
    "smooth_l1_loss": lambda: F.smooth_l1_loss(_Y, _Y),
    "kl_div": lambda: F.kl_div(_Y, _Y, reduction="batchmean"),
    "interpolate": lambda: F.interpolate(_X, scale_factor=2),
    "normalize": lambda: F.normalize(_Y, dim=1),
    "unfold": lambda: F.unfold(_X, 2),
    "dropout2d": lambda: F.dropout2d(_X),
    "relu6": lambda: F.relu6(_X),
    "gumbel_softmax": lambda: F.gumbel_softmax(_Y),
    "norm": lambda: _Y.norm(),
    "float": lambda: _Y.float(),
    "cpu": lambda: _Y.cpu(),
    "numpy": lambda: _Y.numpy(),
    "item": lambda: _Y.reshape(-1)[0].item(),
    "tensor": lambda: torch.tensor([1.0, 2.0]),
    "unique": lambda: torch.unique(_LABELS),
    "fft2": lambda: torch.fft.fft2(_X),
    "inv": lambda: torch.linalg.inv(_EYE),
    "scaled_dot_product_attention": lambda: F.scaled_dot_product_attention(_V, _V, _V),
    "one_hot": lambda: F.one_hot(_LABELS, 8),
    "permute": lambda: _V.permute(0, 2, 1),
}
_LAYERS: dict[str, tuple[Callable[[], object], object]] = {
    "Conv2d": (lambda: nn.Conv2d(8, 4, 3), _X),
    "ConvTranspose2d": (lambda: nn.ConvTranspose2d(8, 4, 2), _X),
    "Linear": (lambda: nn.Linear(16, 4), _V),
    "BatchNorm2d": (lambda: nn.BatchNorm2d(8), _X),
    "LayerNorm": (lambda: nn.LayerNorm(16), _V),
    "GroupNorm": (lambda: nn.GroupNorm(2, 8), _X),
    "RMSNorm": (lambda: nn.RMSNorm(16), _V),
    "GELU": (lambda: nn.GELU(), _V),
    "Softmax": (lambda: nn.Softmax(-1), _V),
    "MaxPool2d": (lambda: nn.MaxPool2d(2), _X),
    "AdaptiveAvgPool2d": (lambda: nn.AdaptiveAvgPool2d(1), _X),
    "Flatten": (lambda: nn.Flatten(), _X),
    "Dropout2d": (lambda: nn.Dropout2d(), _X),
    "LSTM": (lambda: nn.LSTM(16, 8), _V),
    "Upsample": (lambda: nn.Upsample(scale_factor=2), _X),
    "TransformerEncoderLayer": (lambda: nn.TransformerEncoderLayer(16, 2, 32), _V),
    "TransformerDecoderLayer": (lambda: nn.TransformerDecoderLayer(16, 2, 32), _V),
}


def _top_level(run: Callable[[], object]) -> list[str]:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        run()
    events = [event for event in profiler.events() if event.cpu_parent is None]
    return [event.name.removeprefix("aten::") for event in sorted(events, key=lambda one: one.time_range.start)]


def _pattern(shown: tuple[Shown, ...]) -> re.Pattern[str]:
    parts = []
    for one in shown:
        count = ("*" if one.is_optional else "+") if one.repeats else "?" if one.is_optional else ""
        parts.append(f"(?:(?:{'|'.join(map(re.escape, one.names))}) ){count}")
    return re.compile("".join(parts))


@pytest.mark.parametrize("name", sorted(_FUNCTIONS))
def test_functions_show_as_is_said(name: str) -> None:
    ran = _top_level(_FUNCTIONS[name])
    if name == "item":
        ran = ran[-1:]
    assert _pattern(shown_by_function(name)).fullmatch("".join(f"{one} " for one in ran)), ran


@pytest.mark.parametrize("name", sorted(_LAYERS))
def test_layers_show_as_is_said(name: str) -> None:
    make, given = _LAYERS[name]
    layer = make()
    arguments = (given, given) if name == "TransformerDecoderLayer" else (given,)
    ran = _top_level(lambda: layer(*arguments))  # pyright: ignore[reportCallIssue]
    shown = shown_by_layer(name)
    assert shown is not None
    if name == "Linear":
        assert not fast_path(name)
    assert _pattern(shown).fullmatch("".join(f"{one} " for one in ran)), ran


def test_a_layer_that_is_not_listed_is_not_known() -> None:
    assert shown_by_layer("NoSuchLayer") is None
    assert [one.names for one in shown_by_layer("Identity") or ()] == []
