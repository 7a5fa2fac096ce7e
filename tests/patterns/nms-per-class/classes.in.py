# at: index = torch.where
# line: for c in labels.unique():
# fix: unsafe
import torch
from torchvision.ops import nms


def suppress(boxes, scores, labels, threshold=0.5):
    keep = []
    for c in labels.unique():
        index = torch.where(labels == c)[0]
        kept = nms(boxes[index], scores[index], threshold)
        keep.append(index[kept])
    keep = torch.cat(keep)
    return boxes[keep], scores[keep], labels[keep]
