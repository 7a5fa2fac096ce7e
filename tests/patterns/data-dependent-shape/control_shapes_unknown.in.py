# at: return boxes[keep].sum()
def pick(boxes, scores):
    keep = scores > 0.5
    return boxes[keep].sum()
