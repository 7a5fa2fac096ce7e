"""How far simulated traces are from real ones: `python -m bench.corpus.simulator [FOLDER] [--last]`.

FOLDER holds the real traces (default: ../shared/traces). The model was calibrated on half of the operators' shapes of
S08, S09 and S11; the table says of each figure whether it is of the other half. With `--last`, S05 and S10, which
nobody calibrated on, are added. Writes results.json.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from .hardware import hardware_of
from .settings import JobSettings
from .validate import Validation, validate

_CALIBRATED = (
    ("S08_tracelens_vit_h100", "H100 SXM", JobSettings(tf32=False)),
    ("S09_tracelens_vit_mi300", "MI300X", JobSettings(tf32=False)),
    ("S11_tracelens_resnet18_ddp_ckpt_mi300", "MI300X", JobSettings(channels_last=False, ranks=8)),
)
_LAST = (
    ("S05_hta_resnet50_ddp_a100", "A100", JobSettings(channels_last=False, ranks=2)),
    ("S10_tracelens_timesformer_h100", "H100 SXM", JobSettings(tf32=False)),
)
_RESULTS = Path(__file__).with_name("results.json")


def main(arguments: Sequence[str] | None = None) -> int:
    """Validate, print the tables, write the results."""
    parser = argparse.ArgumentParser(prog="python -m bench.corpus.simulator", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("../shared/traces"))
    parser.add_argument("--last", action="store_true", help="also S05 and S10")
    chosen = parser.parse_args(arguments)
    cases = _CALIBRATED + (_LAST if chosen.last else ())
    validations = [
        validate(chosen.folder / f"{name}.json.gz", hardware_of(device), settings) for name, device, settings in cases
    ]
    for validation in validations:
        sys.stdout.write(table(validation) + "\n")
    _RESULTS.write_text(json.dumps([asdict(validation) for validation in validations], indent=1) + "\n", "utf-8")
    return 0


def table(validation: Validation) -> str:
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
