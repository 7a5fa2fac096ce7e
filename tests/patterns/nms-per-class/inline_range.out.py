# at: ops.nms(
# line: for category in range(self.num_classes):
# fix: unsafe
import torch
import torchvision.ops as ops


class Head:
    def select(self, pred):
        kept = ops.batched_nms(pred.boxes, pred.scores, pred.labels, self.limit)
        kept = kept[pred.labels[kept].argsort(stable=True)]
        return pred.take(kept)
