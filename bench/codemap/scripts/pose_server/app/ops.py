"""Before and after the network."""
import functools
import time

import numpy as np
import torch
import torch.nn.functional as F

MEAN = torch.tensor([0.485, 0.456, 0.406])[:, None, None]
STD = torch.tensor([0.229, 0.224, 0.225])[:, None, None]
TIMES = {}


def timed(fn):
    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        start = time.perf_counter()
        try:
            return fn(*args, **kwargs)
        finally:
            TIMES.setdefault(fn.__name__, []).append(time.perf_counter() - start)
    return wrapper


@timed
def preprocess(frame: np.ndarray, boxes, size=(64, 48)):
    """HWC uint8 frame -> crops [n, 3, *size]"""
    image = torch.from_numpy(frame).permute(2, 0, 1).float().div(255)
    crops = []
    for x0, y0, x1, y1 in boxes:
        crop = image[:, y0:y1, x0:x1]
        crop = F.interpolate(crop[None], size=size, mode="bilinear", align_corners=False)[0]
        crops.append((crop - MEAN) / STD)
    return torch.stack(crops)


def flip_back(heat, pairs):
    heat = heat.flip(3)
    for a, b in pairs:
        tmp = heat[:, a].clone()
        heat[:, a] = heat[:, b]
        heat[:, b] = tmp
    return heat


@timed
def decode(heat: torch.Tensor, boxes):
    n, j, h, w = heat.shape
    flat = heat.reshape(n, j, -1)
    score, idx = flat.max(2)
    px, py = idx % w, idx // w
    coords = torch.stack((px, py), -1).float()
    for i in range(n):
        for k in range(j):
            x, y = int(px[i, k]), int(py[i, k])
            if 1 < x < w - 1 and 1 < y < h - 1:
                diff = torch.stack([
                    heat[i, k, y, x + 1] - heat[i, k, y, x - 1],
                    heat[i, k, y + 1, x] - heat[i, k, y - 1, x],
                ])
                coords[i, k] += diff.sign() * .25
    box = torch.as_tensor(boxes, dtype=torch.float32)
    scale = (box[:, 2:] - box[:, :2]) / torch.tensor([w, h])
    coords = coords * scale[:, None] + box[:, None, :2]
    return torch.cat((coords, score.unsqueeze(-1)), dim=-1)
