# at: width, height = 
# line: for i in range(len(boxes)):
# fix: unsafe
import torch


def encode(boxes, anchors):
    def one_sample(boxes_i, anchors_i):
        width, height = boxes_i[2] - boxes_i[0], boxes_i[3] - boxes_i[1]
        centre = torch.stack([boxes_i[0] + width / 2, boxes_i[1] + height / 2])
        return torch.cat([(centre - anchors_i[:2]) / anchors_i[2:], torch.stack([width, height]).log()])
    # one row a box
    return torch.vmap(one_sample)(boxes, anchors)
