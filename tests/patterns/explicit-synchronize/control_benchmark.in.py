# at: torch.cuda.synchronize()
# confirmed: no
import time

import torch


def benchmark(model, x):
    start = time.perf_counter()
    model(x)
    torch.cuda.synchronize()
    return time.perf_counter() - start
