# at: with torch.profiler.profile(**options) as prof:
# confirmed: no
import torch


def main(options):
    with torch.profiler.profile(**options) as prof:
        torch.ones(2)
