"""Sees every attention that a model runs, whoever wrote it, without changing what it computes.

While it watches, the functions that attention is made of are wrapped: the fused call, the packed calls of PyTorch's
own encoder layers, and, for attention written by hand, the softmax and the product that uses its result. A wrapper
calls the original first, and what it then looks at is detached. Modules are followed by global hooks: hooks on the
modules themselves would switch off PyTorch's fast path. Code that `torch.compile` has taken over is not seen.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules import module as hooks


@dataclass(slots=True)
class Owner:
    """A module that is being called."""

    module: nn.Module | None
    attended: int = 0
    """How many attentions it has run itself in this call, those of its children left out."""


@dataclass(frozen=True, slots=True)
class Attended:
    """One execution of an attention. Tensors have any leading axes, then (heads,) tokens and width or keys."""

    owner: Owner
    output: Tensor
    """The program's own tensor, so that its gradient can be asked for: (..., heads, queries, width)."""
    order: tuple[int, ...] = ()
    """How to permute the axes of `output` to make them those; () if they are."""
    query: Tensor | None = None
    key: Tensor | None = None
    weights: Tensor | None = None
    """(..., heads, queries, keys), where the program computes them itself."""
    mask: Tensor | None = None
    is_causal: bool = False
    scale: float | None = None
    projection: Tensor | None = None
    """Weight of the output projection, where the call itself takes it."""


class Observer:
    """What is told of attentions; the base class lets all pass."""

    def attended(self, call: Attended) -> None:
        """An attention has run."""

    def projected(self, weight: Tensor) -> None:
        """A linear layer has been called, with this weight."""

    def mapped(self, rows: int, columns: int) -> None:
        """A layer has made feature maps of this size."""


class _Pending(threading.local):
    """What a thread is in the middle of."""

    def __init__(self) -> None:
        self.owners: list[Owner] = []
        self.weights: Tensor | None = None
        """Result of the last softmax."""
        self.is_looking = False
        """Whether we are at work ourselves: what we compute is nobody's attention."""


class Watch:
    """Wraps and hooks between `begin` and `end`."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self._pending = _Pending()
        self._undo: list[Callable[[], object]] = []
        self._wrapped: dict[int, Callable[..., Any]] = {}
        """The wrappers of functions of modules, by the identity of the original."""
        self.failure = ""
        """What went wrong first; nothing is looked at after that."""

    def begin(self) -> None:
        """Start to watch."""
        functional = torch.nn.functional
        for place, name, seen in (
            (functional, "scaled_dot_product_attention", self._fused),
            (torch, "_native_multi_head_attention", self._packed),
            (torch, "_transformer_encoder_layer_fwd", self._encoder_layer),
            (torch, "softmax", self._softmax),
            (torch.Tensor, "softmax", self._softmax),
            (torch, "matmul", self._product),
            (torch, "bmm", self._product),
            (torch.Tensor, "matmul", self._product),
            (torch.Tensor, "bmm", self._product),
            (torch.Tensor, "__matmul__", self._product),
            (torch, "einsum", self._equation),
        ):
            if hasattr(place, name):
                self._wrap(place, name, seen)
        self._wrap_copies()
        for handle in (
            hooks.register_module_forward_pre_hook(self._enter),
            hooks.register_module_forward_hook(self._leave, always_call=True),
        ):
            self._undo.append(handle.remove)

    def end(self) -> None:
        """Stop, and leave everything as it was."""
        while self._undo:
            self._undo.pop()()
        self._wrapped.clear()

    def _wrap(self, place: Any, name: str, seen: Callable[..., None]) -> None:
        original = getattr(place, name)
        is_own = name in vars(place)

        def wrapped(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            if not self.failure and not self._pending.is_looking and not torch.compiler.is_compiling():
                self._look(seen, result, args, kwargs)
            return result

        if place is not torch.Tensor:
            self._wrapped[id(original)] = wrapped
        setattr(place, name, wrapped)
        self._undo.append((lambda: setattr(place, name, original)) if is_own else (lambda: delattr(place, name)))

    def _wrap_copies(self) -> None:
        """Wrap what modules have taken by name: `from torch.nn.functional import scaled_dot_product_attention`."""
        for module in list(sys.modules.values()):
            if getattr(module, "__name__", "torch").partition(".")[0] == "torch":
                continue
            names = getattr(module, "__dict__", {})
            for name, value in list(names.items()):
                if (wrapped := self._wrapped.get(id(value))) is not None:
                    names[name] = wrapped
                    self._undo.append(lambda names=names, name=name, value=value: names.__setitem__(name, value))

    def _look(self, seen: Callable[..., None], *given: Any) -> None:
        self._pending.is_looking = True
        try:
            with torch.no_grad():
                seen(*given)
        except Exception as error:  # noqa: BLE001 - the program must not fail because somebody looks at it
            self.failure = f"{type(error).__name__}: {error}"
        finally:
            self._pending.is_looking = False

    # Modules

    def _enter(self, module: nn.Module, _args: Any) -> None:
        self._pending.owners.append(Owner(module))

    def _leave(self, module: nn.Module, _args: Any, output: Any) -> None:
        owners = self._pending.owners
        while owners and owners.pop().module is not module:
            pass
        if self.failure:
            return
        self._look(self._left, module, output)

    def _left(self, module: nn.Module, output: Any) -> None:
        weight = getattr(module, "weight", None)
        if isinstance(module, nn.Linear) and isinstance(weight, Tensor):
            self._observer.projected(weight)
        elif isinstance(output, Tensor) and output.dim() == 4 and isinstance(module, nn.modules.conv._ConvNd):
            self._observer.mapped(int(output.shape[2]), int(output.shape[3]))

    def _owner(self) -> Owner:
        return self._pending.owners[-1] if self._pending.owners else Owner(None)

    def _tell(self, **found: Any) -> None:
        owner = self._owner()
        self._observer.attended(Attended(owner, **found))
        owner.attended += 1
        self._pending.weights = None

    # Functions

    def _fused(self, output: Tensor, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        names = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")
        given = dict(zip(names, args, strict=False)) | kwargs
        query, key, mask = given["query"], given["key"], given.get("attn_mask")
        if _is_plain(output) and _is_plain(query) and _is_plain(key):
            self._tell(
                output=output,
                query=query,
                key=key,
                mask=mask if isinstance(mask, Tensor) else None,
                is_causal=bool(given.get("is_causal", False)),
                scale=given.get("scale"),
                projection=_own_projection(self._owner().module),
            )

    def _packed(self, _output: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        """`_native_multi_head_attention(query, key, value, embed_dim, num_head, qkv_weight, qkv_bias, proj_weight,
        proj_bias, mask, ...)`"""
        if not kwargs and len(args) >= 8 and args[0] is args[1] and args[1] is args[2]:
            mask = args[9] if len(args) > 9 else None
            self._from_input(args[0], int(args[4]), args[5], args[6], args[7], mask)

    def _encoder_layer(self, _output: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        """`_transformer_encoder_layer_fwd(src, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias,
        use_gelu, norm_first, eps, norm_weight_1, norm_bias_1, ..., mask, mask_type)`"""
        if kwargs or len(args) < 12 or not _is_plain(args[0]):
            return
        source = args[0]
        if args[8]:
            source = torch.nn.functional.layer_norm(source, (int(args[1]),), args[10], args[11], float(args[9]))
        self._from_input(source, int(args[2]), args[3], args[4], args[5], args[18] if len(args) > 18 else None)

    def _from_input(
        self, source: Any, heads: int, weight: Tensor, bias: Tensor | None, projection: Tensor, mask: Any
    ) -> None:
        """Attention of a call that shows only what goes in: computed once more."""
        if not _is_plain(source) or source.dim() != 3:
            return
        packed = torch.nn.functional.linear(source, weight, bias)
        query, key, value = packed.unflatten(-1, (3, heads, -1)).permute(2, 0, 3, 1, 4)
        allowed = None
        if isinstance(mask, Tensor) and mask.dtype == torch.bool:  # True where there is nothing to be seen
            allowed = ~(mask[:, None, None, :] if mask.dim() == 2 and mask.shape[0] == source.shape[0] else mask)
        output = torch.nn.functional.scaled_dot_product_attention(query, key, value, allowed)
        self._tell(output=output, query=query, key=key, mask=allowed, projection=projection)

    def _softmax(self, output: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        axis = kwargs.get("dim", args[1] if len(args) > 1 else None)
        if _is_plain(output) and output.dim() >= 3 and axis in (-1, output.dim() - 1):
            self._pending.weights = output

    def _product(self, output: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        weights = self._pending.weights
        if weights is None or kwargs or len(args) != 2 or not _is_plain(args[0]) or not _is_plain(output):
            return
        if args[0].shape == weights.shape and output.dim() == weights.dim():
            self._tell(output=output, weights=weights, projection=_own_projection(self._owner().module))

    def _equation(self, output: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        """`einsum("bhqk,bhkd->bhqd", weights, value)`, whatever the letters and wherever the heads end up."""
        weights = self._pending.weights
        if weights is None or not isinstance(args[0], str) or "->" not in args[0] or "." in args[0]:
            return
        given, made = args[0].replace(" ", "").split("->")
        operands = list(args[1]) if len(args) == 2 and not isinstance(args[1], Tensor) else list(args[1:])
        for letters, operand in zip(given.split(","), operands, strict=True):
            if operand.shape == weights.shape and letters[-1] not in made:
                width = next((letter for letter in made if letter not in letters), "")
                order = [made.find(letter) for letter in (*letters[:-1], width)]
                if width and min(order) >= 0 and len(order) == len(made):
                    self._tell(output=output, order=tuple(order), weights=weights)
                return


def _is_plain(value: object) -> bool:
    """Whether a tensor is an ordinary one: nested, sparse and wrapped ones are somebody else's."""
    return (
        isinstance(value, Tensor)
        and type(value) in (Tensor, nn.Parameter)
        and value.layout is torch.strided
        and not value.is_nested
        and value.device.type != "meta"
    )


def _own_projection(module: nn.Module | None) -> Tensor | None:
    """The output projection that PyTorch's own attention does without calling the module."""
    if isinstance(module, nn.MultiheadAttention):
        return module.out_proj.weight
    return None
