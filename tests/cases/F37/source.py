# slug: host-image-decode
# verdict: fault
# at: train_set = dict(type="VideoSet", clip_len=32, use_decord=False)
# fix: unsafe
# note: the reader goes through each film frame by frame; what the workers do is not in the trace
import torch
from torch import nn
from torch.utils.data import DataLoader

from videoset import build_dataset

train_set = dict(type="VideoSet", clip_len=32, use_decord=False)


class TSN(nn.Module):
    def __init__(self, backbone, classes=400):
        super().__init__()
        self.backbone = backbone
        self.cls_head = nn.Linear(2048, classes)

    def forward(self, imgs):
        b, n = imgs.shape[:2]
        return self.cls_head(self.backbone(imgs.flatten(0, 1)).view(b, n, -1).mean(1))


def train(model, optimizer, profiler):
    loader = DataLoader(build_dataset(train_set), batch_size=8, num_workers=8, pin_memory=True)
    for imgs, label in loader:
        loss = nn.functional.cross_entropy(model(imgs.cuda(non_blocking=True)), label.cuda(non_blocking=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        profiler.step()
