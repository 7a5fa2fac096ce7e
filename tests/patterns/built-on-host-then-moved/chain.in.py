# at:         ids = th.arange(
# line: ids = th.arange(
import torch as th


class Embed:
    def __init__(self, device):
        self.dev = th.device(device)

    def position(self, n):
        ids = th.arange(
            n,  # tokens
        ).unsqueeze(0).float().to(self.dev, non_blocking=True)
        return ids * 0.5


def run():
    return Embed("cpu").position(4)
