# at: pred = logits.argmax
# line: for i in range(n):
# fix: safe
import numpy as np
import torch

n = 4


class IoU:
    def __init__(self):
        self.cm = np.zeros((n, n), dtype=np.int64)

    def update(self, logits, target):
        pred = logits.argmax(1).cpu().numpy().ravel()
        true = target.long().cpu().numpy().ravel()
        for i in range(n):
            for j in range(n):
                self.cm[i, j] += np.sum((true == i) & (pred == j))


def run():
    torch.manual_seed(0)
    iou = IoU()
    target = torch.randint(-1, n + 1, (2, 8, 8))
    iou.update(torch.randn(2, n, 8, 8), target)
    iou.update(torch.randn(2, n, 8, 8), target)
    return torch.from_numpy(iou.cm)
