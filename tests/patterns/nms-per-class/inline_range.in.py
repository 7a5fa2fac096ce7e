# at: ops.nms(
# line: for category in range(self.num_classes):
# fix: unsafe
import torch
import torchvision.ops as ops


class Head:
    def select(self, pred):
        kept = []  # indices of all classes
        for category in range(self.num_classes):
            where = (pred.labels == category).nonzero().squeeze(1)
            kept.append(where[ops.nms(pred.boxes[where], pred.scores[where], iou_threshold=self.limit)])
        return pred.take(torch.cat(kept))
