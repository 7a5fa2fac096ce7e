# at: index = 
import torch
from torchvision.ops import nms


def suppress(boxes, scores, labels, threshold, n):
    keep = []
    for c in range(1, n):
        index = torch.where(labels == c)[0]
        keep.append(index[nms(boxes[index], scores[index], threshold)])
    return torch.cat(keep)
