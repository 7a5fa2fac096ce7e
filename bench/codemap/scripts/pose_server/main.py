import queue

import numpy as np
import torch
from torch.profiler import profile, schedule

from app.service import PoseService, Request


def fill(inbox, n):
    rng = np.random.default_rng(0)
    for i in range(n):
        frame = rng.integers(0, 255, (120, 160, 3), dtype=np.uint8)
        inbox.put(Request(i, frame, [(10, 10, 70, 100), (60, 20, 150, 110)][: 1 + i % 2]))


def main():
    inbox = queue.Queue()
    fill(inbox, 8)
    service = PoseService()
    with profile(schedule=schedule(wait=1, warmup=1, active=2)) as prof:
        service.run(inbox, prof.step)


if __name__ == "__main__":
    main()
