"""Record a few training steps: `python profile.py` writes traces/train.pt.trace.json.gz.

Runs on the GPU if there is one, else on the CPU. Needs torch and numpy, no data.
"""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
# The project's modules first; this folder last, so that this file does not stand in for the standard `profile`.
sys.path = [str(HERE / "src"), *sys.path[1:], str(HERE)]

import torch  # noqa: E402
from torch.profiler import ProfilerActivity, profile, schedule  # noqa: E402
from train import train  # noqa: E402

WAIT, WARMUP, ACTIVE = 2, 2, 3


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if device == "cuda" else [])
    target = HERE / "traces" / "train.pt.trace.json.gz"
    target.parent.mkdir(exist_ok=True)
    torch.manual_seed(0)
    torch.set_num_threads(1)  # so that recordings of machines with few and many cores compare
    with profile(
        activities=activities,
        schedule=schedule(wait=WAIT, warmup=WARMUP, active=ACTIVE, repeat=1),
        on_trace_ready=lambda p: p.export_chrome_trace(str(target)),
        record_shapes=True,
        with_stack=True,
    ) as profiler:
        train(WAIT + WARMUP + ACTIVE, device=device, on_step=profiler.step)
    print(f"{target.relative_to(HERE)}: {target.stat().st_size / 1e6:.2f} MB, {ACTIVE} steps on {device}")


if __name__ == "__main__":
    main()
