"""How far simulated traces are from real ones: `python -m bench.corpus.simulator [FOLDER] [--last]`.

FOLDER holds the real traces (default: shared/traces beside the checkout); results go to results.json. The model was
calibrated on half of the operators' shapes of S08, S09 and S11; what is marked with a star, or called `held_out`, is of
the other half. With `--last`, S10, which nobody calibrated on, is added.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from ...folder import DEFAULT_FOLDER
from ...results import Figure, publish
from .hardware import hardware_of
from .settings import JobSettings
from .validate import Comparison, Validation, validate

_CALIBRATED = (
    ("S08_tracelens_vit_h100", "H100 SXM", JobSettings(tf32=False)),
    ("S09_tracelens_vit_mi300", "MI300X", JobSettings(tf32=False)),
    ("S11_tracelens_resnet18_ddp_ckpt_mi300", "MI300X", JobSettings(ranks=8)),
)
_LAST = (("S10_tracelens_timesformer_h100", "H100 SXM", JobSettings(tf32=False)),)
_NOTES = (
    "ratios are simulated by real device time; idle time counts communication as idle",
    "S05, the other trace that was kept for a last look, has no shapes: there is nothing to simulate it from",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Validate, print the tables, write the results."""
    parser = argparse.ArgumentParser(prog="python -m bench.corpus.simulator", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=DEFAULT_FOLDER)
    parser.add_argument("--last", action="store_true", help="also S10")
    chosen = parser.parse_args(arguments)
    validations = [
        validate(chosen.folder / f"{name}.json.gz", hardware_of(device), settings)
        for name, device, settings in _CALIBRATED + (_LAST if chosen.last else ())
    ]
    for validation in validations:
        sys.stdout.write(_table(validation) + "\n")
    figures = [figure for validation in validations for figure in _figures(validation)]
    details = {validation.trace: _details(validation.operators) for validation in validations}
    publish("corpus/simulator", figures, details=details, notes=_NOTES)
    return 0


def _figures(validation: Validation) -> Iterable[Figure]:
    subject = validation.trace.split("_")[0]
    yield Figure(subject, "real_idle_pct", round(validation.real_idle_pct, 1))
    yield Figure(subject, "simulated_idle_pct", round(validation.simulated_idle_pct, 1))
    classes = [one for one in validation.operators if one.kind.startswith("class")]
    is_new = any(name == validation.trace.removesuffix(".json.gz") for name, _, _ in _LAST)
    for name, held_out in (("calibrated_ratio", False), ("held_out_ratio", True)):
        its = [one for one in classes if (one.held_out or is_new) == held_out]
        if real := sum(one.real_us for one in its):
            yield Figure(subject, name, round(sum(one.simulated_us for one in its) / real, 2))


def _details(operators: Sequence[Comparison]) -> dict[str, float]:
    """Total and median ratio of each class and operator."""
    details = {}
    for one in operators:
        key = f"{one.kind}{' (held out)' if one.held_out else ''}"
        details[f"{key} calls"] = one.count
        details[f"{key} total_ratio"] = round(one.total_ratio, 2)
        details[f"{key} median_ratio"] = round(one.median_ratio, 2)
    return details


def _table(validation: Validation) -> str:
    """A validation in words, the classes and operators with the most time first."""
    lines = [
        f"{validation.trace} on {validation.device}",
        f"  idle {validation.real_idle_pct:.1f} % real, {validation.simulated_idle_pct:.1f} % simulated;"
        f" step {validation.real_step_us:.0f} / {validation.simulated_step_us:.0f} us;"
        f" kernels {validation.real_kernels} / {validation.simulated_kernels}",
        f"  {'':34}{'calls':>6}{'real us':>10}{'ours us':>10}{'total':>8}{'median':>8}",
    ]
    for one in sorted(validation.operators, key=lambda one: (not one.kind.startswith("class"), -one.real_us)):
        held = " *" if one.held_out else ""
        lines.append(
            f"  {one.kind + held:34}{one.count:6}{one.real_us:10.0f}{one.simulated_us:10.0f}"
            f"{one.total_ratio:8.2f}{one.median_ratio:8.2f}"
        )
    return "\n".join([*lines, "  * not calibrated on", ""])


if __name__ == "__main__":
    sys.exit(main())
