# at: torch.cuda.synchronize()
import torch


def to_host(maps):
    hosts = [m.to("cpu", non_blocking=True) for m in maps]
    torch.cuda.synchronize()
    return [h.numpy() for h in hosts]
