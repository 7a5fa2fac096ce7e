"""The training as one command: pairs in, an adapter with its loss curve and its card out."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import msgspec

from .base import Base
from .card import LOSSES, Card, Learned, card_of, write_card, write_losses
from .checkpoint import CHECKPOINT, Progress, load_checkpoint, save_checkpoint
from .examples import Example, make_example
from .fit import Plan, fit
from .lora import add_lora, save_adapter
from .pairs import Pair
from .updates import Updates

Tell = Callable[[str], None]
SMALL_LAYERS = 15
"""Of the small model's thirty, those that learn: the lower ones then need no backward pass."""
_MOST_SEED = 2**31


@dataclass(frozen=True, slots=True)
class Settings:
    """All that decides what is learned, but for the pairs and the base."""

    seed: int = 0
    epochs: int = 1
    minutes: float | None = None
    """To stop after; the learning rate falls to its end by then."""
    rank: int = 16
    layers: int | None = None
    """Upper layers that learn; None for all."""
    rate: float = 8e-4
    """The highest learning rate."""
    batch: int = 4
    """Pairs per update."""
    prompt_budget: int | None = None
    """Tokens of a prompt at most; None for what the base is asked with."""
    threads: int = 2
    save_every: int = 20
    """Updates between two checkpoints."""


def train(
    pairs: Sequence[Pair], base: Base, out: Path, settings: Settings, tell: Tell, *, resume: bool = False
) -> Card:
    """Learn from the pairs of the split "train" and write adapter, loss curve and card into `out`.

    A training that was killed goes on from its last checkpoint with `resume`, and ends with the same adapter as one
    that was not. Raises ValueError if there is nothing to learn from, CheckpointError (a ValueError) if there is
    nothing to go on from, OSError.
    """
    known = [pair for pair in pairs if pair.split == "train"]
    if not known:
        raise ValueError("no pair is of the split 'train'")
    budget = settings.prompt_budget or base.prompt_budget
    settings = replace(settings, prompt_budget=budget)
    model = add_lora(base.model, settings.rank, settings.layers, settings.seed)
    updates = Updates(model, settings.rate)
    progress = Progress(_digest(known, base, settings), 0.0, ())
    if resume:
        progress, state = load_checkpoint(out, progress.task)
        updates.restore(state)
        tell(f"goes on after {progress.updates} updates")

    def example_of(place: int, nth: int) -> Example:
        order_seed = Random(f"{settings.seed}:{place}:{nth}").randrange(_MOST_SEED)
        return make_example(known[place], base.tokenizer, budget, order_seed)

    def keep(reached: Progress) -> None:
        save_checkpoint(out, reached, updates.state())
        save_adapter(model, base.name, out)
        write_losses(out / LOSSES, reached.curve)

    def after(reached: Progress) -> None:
        if reached.updates % settings.save_every == 0:
            keep(reached)
            tell(_so_far(reached, len(known) * settings.epochs, settings.save_every))

    tell(f"{len(known)} pairs, {sum(one.numel() for one in updates.parameters):,} parameters learn")
    most_seconds = None if settings.minutes is None else 60.0 * settings.minutes
    plan = Plan(settings.seed, settings.epochs, settings.batch, settings.threads, most_seconds)
    progress = fit(model, updates, example_of, len(known), plan, progress, after)
    if not progress.curve:
        raise ValueError("the time was over before the first update")
    keep(progress)
    card = card_of(base, Learned.of(pairs), settings, progress)
    write_card(out, card)
    (out / CHECKPOINT).unlink()
    return card


def _digest(pairs: Sequence[Pair], base: Base, settings: Settings) -> str:
    """Of all that decides what comes out; how much time there is and how often is saved do not count."""
    deciding = replace(settings, minutes=None, save_every=0, threads=0)
    digest = hashlib.sha256()
    for part in (base.name, base.weights, deciding, pairs):
        digest.update(msgspec.json.encode(part))
    return digest.hexdigest()


def _so_far(progress: Progress, pairs: int, window: int) -> str:
    last = progress.curve[-1]
    recent = progress.curve[-window:]
    loss = sum(point.loss for point in recent) / len(recent)
    return (
        f"{last.pairs} of {pairs} pairs, loss {loss:.3f}, "
        f"{last.tokens / last.pairs:.0f} tokens a pair, {last.tokens / max(progress.seconds, 1e-9):.0f} tokens/s"
    )
