import torch
import torch.nn.functional as F
from torch import nn

from module import BaseModule


def conv_bn_act(cin, cout, k=3, s=1, act=nn.ReLU):
    return nn.Sequential(
        nn.Conv2d(cin, cout, k, stride=s, padding=k // 2, bias=False),
        nn.BatchNorm2d(cout),
        act(inplace=True),
    )


class Encoder(nn.Module):
    def __init__(self, widths=(16, 32, 64)):
        super().__init__()
        stages = []
        cin = 3
        for width in widths:
            stages.append(conv_bn_act(cin, width, s=2))
            stages.append(conv_bn_act(width, width))
            cin = width
        self.stages = nn.ModuleList(stages)
        self.pool = nn.AdaptiveAvgPool2d(1)

    def forward(self, x):
        for stage in self.stages:
            x = stage(x)
        return self.pool(x).flatten(1)


class ClassificationTask(BaseModule):
    def __init__(self, classes=7, lr=1e-3, label_smoothing=0.1):
        super().__init__()
        self.lr = lr
        self.encoder = Encoder()
        self.head = nn.Linear(64, classes)
        self.criterion = nn.CrossEntropyLoss(label_smoothing=label_smoothing)

    def forward(self, x):
        return self.head(self.encoder(x))

    def _shared_step(self, batch, stage):
        x, y = batch
        logits = self(x)
        loss = self.criterion(logits, y)
        acc = (logits.argmax(dim=-1) == y).float().mean()
        self.log(f"{stage}/loss", loss, n=len(x))
        self.log(f"{stage}/acc", acc, n=len(x))
        probs = F.softmax(logits.detach(), dim=-1)
        entropy = -(probs * probs.clamp_min(1e-8).log()).sum(-1).mean()
        self.log(f"{stage}/entropy", entropy)
        return loss

    def training_step(self, batch, batch_idx):
        return self._shared_step(batch, "train")

    def validation_step(self, batch, batch_idx):
        return self._shared_step(batch, "val")

    def configure_optimizers(self):
        decay, no_decay = [], []
        for name, p in self.named_parameters():
            (no_decay if p.ndim < 2 else decay).append(p)
        opt = torch.optim.AdamW([{"params": decay, "weight_decay": 0.05}, {"params": no_decay, "weight_decay": 0.0}], lr=self.lr)
        return opt, torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=100)
