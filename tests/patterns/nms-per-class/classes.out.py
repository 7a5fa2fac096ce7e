# at: index = torch.where
# line: for c in labels.unique():
# fix: unsafe
import torch
from torchvision.ops import nms
import torchvision


def suppress(boxes, scores, labels, threshold=0.5):
    keep = torchvision.ops.batched_nms(boxes, scores, labels, threshold)
    keep = keep[labels[keep].argsort(stable=True)]
    return boxes[keep], scores[keep], labels[keep]
