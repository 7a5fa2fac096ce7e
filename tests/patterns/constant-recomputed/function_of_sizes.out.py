# at: ys = torch.linspace(-1, 1, height, device=device)
# fix: unsafe
import torch
import functools


@functools.lru_cache(maxsize=16)
def sampling_grid(height, width, device="cpu"):
    """Coordinates of the pixels' centres."""
    ys = torch.linspace(-1, 1, height, device=device)
    xs = torch.linspace(-1, 1, width, device=device)
    return torch.stack(torch.meshgrid(ys, xs, indexing="ij"), -1)
