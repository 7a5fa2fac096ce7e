"""What detectors do with boxes: overlaps, suppression, and matching predictions with targets."""

from __future__ import annotations

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor, nn

from . import marks


def pairwise_iou(a: Tensor, b: Tensor) -> Tensor:
    """Overlap of each box of `a` (…, n, 4) with each of `b` (…, m, 4), corners as x1 y1 x2 y2: (…, n, m)."""
    low = torch.maximum(a[..., :, None, :2], b[..., None, :, :2])
    high = torch.minimum(a[..., :, None, 2:], b[..., None, :, 2:])
    shared = (high - low).clamp(min=0).prod(-1)
    return shared / (area(a)[..., :, None] + area(b)[..., None, :] - shared).clamp(min=1e-6)


def area(boxes: Tensor) -> Tensor:
    """Of boxes (…, 4) as corners."""
    return (boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1])


def to_corners(boxes: Tensor) -> Tensor:
    """(…, 4) as centre and size -> as corners."""
    centre, half = boxes[..., :2], boxes[..., 2:] / 2
    return torch.cat((centre - half, centre + half), -1)


def batched_nms(boxes: Tensor, scores: Tensor, classes: Tensor, threshold: float) -> Tensor:
    """Which of the boxes (n, 4) of all classes stay, best first: each class is moved to a place of its own, so that one
    call does for all."""
    offsets = classes.to(boxes.dtype) * (boxes.max() + 1)
    return nms(boxes + offsets[:, None], scores, threshold)


def nms(boxes: Tensor, scores: Tensor, threshold: float) -> Tensor:
    """Which of the boxes (n, 4) of one class stay, best first."""
    return torch.ops.torchvision.nms(boxes, scores, threshold)


class Matcher(nn.Module):
    """Gives each target the prediction that fits best, one for each (DETR, arXiv 2005.12872): each image's costs are
    worked out by themselves, and all go to the host in one copy."""

    @torch.no_grad()
    def forward(self, logits: Tensor, boxes: Tensor, classes: Tensor, targets: Tensor) -> Tensor:
        """(batch, queries, classes) and (batch, queries, 4); (batch, objects) and (batch, objects, 4). The query of
        each object: (batch, objects)."""
        return self.assign(self.costs(logits, boxes, classes, targets))

    def costs(self, logits: Tensor, boxes: Tensor, classes: Tensor, targets: Tensor) -> Tensor:
        """(batch, queries, objects)."""
        wanted = classes[:, None, :].expand(-1, logits.shape[1], -1)
        chance = logits.float().softmax(-1).gather(-1, wanted)
        distance = (boxes[:, :, None].float() - targets[:, None]).abs().sum(-1)
        return 5 * distance - chance - 2 * pairwise_iou(to_corners(boxes.float()), to_corners(targets))

    def assign(self, costs: Tensor) -> Tensor:
        """The cheapest queries: (batch, objects)."""
        on_host = marks.to_host(costs).numpy()
        with marks.on_host():
            found = torch.from_numpy(np.stack([linear_sum_assignment(cost.T)[1] for cost in on_host]))
        return marks.to_device(found, costs.device)


def _nms_on_host(boxes: Tensor, scores: Tensor, threshold: float) -> Tensor:
    """As torchvision's kernel for the CPU: greedily from the best box."""
    corners, order = boxes.detach().float().cpu().numpy(), np.argsort(-scores.detach().float().cpu().numpy())
    areas = (corners[:, 2] - corners[:, 0]) * (corners[:, 3] - corners[:, 1])
    kept = []
    while len(order):
        best, rest = order[0], order[1:]
        kept.append(best)
        low, high = np.maximum(corners[best, :2], corners[rest, :2]), np.minimum(corners[best, 2:], corners[rest, 2:])
        shared = np.clip(high - low, 0, None).prod(-1)
        order = rest[shared <= threshold * (areas[best] + areas[rest] - shared)]
    return torch.from_numpy(np.array(kept, dtype=np.int64)).to(boxes.device)


def _define_nms() -> torch.library.Library:
    library = torch.library.Library("torchvision", "FRAGMENT")
    library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    for key in ("CPU", "CUDA"):
        library.impl("nms", _nms_on_host, key)
    return library


try:
    import torchvision as _torchvision  # noqa: F401  # pyright: ignore[reportMissingImports]
except ImportError:
    # Traces shall show the operator by its real name.
    _LIBRARY = _define_nms()
