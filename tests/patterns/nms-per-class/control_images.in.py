# at: keep = nms
from torchvision.ops import nms


def postprocess(outputs, threshold):
    results = []
    for boxes, scores in outputs:
        keep = nms(boxes, scores, threshold)
        results.append((boxes[keep], scores[keep]))
    return results
