# at: total = total + area(box).sum()
# line: @torch.compile
import torch


@torch.compile(dynamic=True)
def area(box):
    return (box[:, 2] - box[:, 0]) * (box[:, 3] - box[:, 1])


def total_area(boxes):
    total = 0
    for box in boxes:
        total = total + area(box).sum()
    return total


def run():
    return total_area([])
