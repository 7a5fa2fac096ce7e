# at: self.scaler.scale(loss).backward()
# fix: unsafe
from contextlib import nullcontext

import torch
from torch.nn.parallel import DistributedDataParallel


class Trainer:
    def __init__(self, net, rank, accumulate):
        self.model = DistributedDataParallel(net, device_ids=[rank])
        self.accumulate = accumulate

    def epoch(self, loader):
        for step, (images, labels) in enumerate(loader):
            with nullcontext() if ((step + 1) % self.accumulate == 0 or step + 1 == len(loader)) else self.model.no_sync():
                with torch.autocast("cuda"):
                    # labels are class indices
                    logits = self.model(images)

                    loss = self.criterion(logits, labels) / self.accumulate
                self.scaler.scale(loss).backward()
            self.log(step, loss.detach(), self.model.module.head.weight.grad)
            if (step + 1) % self.accumulate == 0 or step + 1 == len(loader):
                self.scaler.step(self.optimizer)
                self.scaler.update()
                self.optimizer.zero_grad(set_to_none=True)
