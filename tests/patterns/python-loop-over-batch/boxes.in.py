# at: width, height = 
# line: for i in range(len(boxes)):
# fix: unsafe
import torch


def encode(boxes, anchors):
    encoded = []
    for i in range(len(boxes)):
        width, height = boxes[i, 2] - boxes[i, 0], boxes[i, 3] - boxes[i, 1]
        centre = torch.stack([boxes[i, 0] + width / 2, boxes[i, 1] + height / 2])
        encoded.append(torch.cat([(centre - anchors[i][:2]) / anchors[i][2:], torch.stack([width, height]).log()]))
    # one row a box
    return torch.stack(encoded)
