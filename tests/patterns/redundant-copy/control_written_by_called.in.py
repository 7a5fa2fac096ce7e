# at: boxes = shifted(batch["boxes"].clone(), 2)
# confirmed: no


def shifted(boxes, pad):
    boxes[..., 0] -= pad
    return boxes


def evaluate(batch):
    boxes = shifted(batch["boxes"].clone(), 2)
    return boxes.sum() + batch["boxes"].sum()
