# at: keep = nms
# confirmed: no
from torchvision.ops import nms


def postprocess(boxes, scores, threshold):
    keep = nms(boxes, scores, threshold)
    return boxes[keep], scores[keep]
