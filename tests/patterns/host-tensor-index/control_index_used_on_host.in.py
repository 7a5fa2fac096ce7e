# at: chosen = boxes[keep]
# line: keep = torch.arange
import torch


def sample(boxes, names):
    keep = torch.arange(0, 100, 7)
    chosen = boxes[keep]
    return chosen, [names[i] for i in keep.tolist()]
