# Exported from a notebook.
# %%
import numpy as np
import torch, torch.nn as nn, torch.nn.functional as F
from torch.profiler import profile, record_function, ProfilerActivity, schedule

IMG, NCLS, BS = 64, 4, 4
LR = 1e-3

# %%
def double_conv(i, o): return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU(), nn.Conv2d(o, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU())

class UNet(nn.Module):
    def __init__(self, c=(8, 16, 32, 64)):
        super().__init__()
        self.downs = nn.ModuleList([double_conv(i, o) for i, o in zip((3,) + c[:-2], c[:-1])])
        self.mid = double_conv(c[-2], c[-1])
        self.ups = nn.ModuleList([nn.ConvTranspose2d(i, i // 2, 2, stride=2) for i in c[:0:-1]])
        self.decs = nn.ModuleList([double_conv(i, i // 2) for i in c[:0:-1]])
        self.out = nn.Conv2d(c[0], NCLS, 1)
    def forward(self, x):
        skips = []
        for d in self.downs:
            x = d(x); skips.append(x)
            x = F.max_pool2d(x, 2)
        x = self.mid(x)
        for up, dec, s in zip(self.ups, self.decs, skips[::-1]):
            x = up(x)
            x = torch.cat([x, s], dim=1)
            x = dec(x)
        return self.out(x)

# %%
def make_batch():
    img = np.random.rand(BS, IMG, IMG, 3).astype(np.float32)
    msk = np.random.randint(0, NCLS, (BS, IMG, IMG))
    x = torch.from_numpy(img).permute(0, 3, 1, 2).contiguous()
    y = torch.from_numpy(msk)
    return x, y

def dice(logits, y, eps=1e-6):
    p = logits.softmax(1)
    t = F.one_hot(y, NCLS).permute(0, 3, 1, 2).float()
    inter = (p * t).sum((0, 2, 3)); union = (p + t).sum((0, 2, 3))
    return 1 - ((2 * inter + eps) / (union + eps)).mean()

def iou(pred, y):
    ious = []
    for c in range(NCLS):
        a, b = pred == c, y == c
        ious.append(((a & b).sum().float() / (a | b).sum().clamp(min=1).float()).item())
    return sum(ious) / len(ious)

# %%
model = UNet()
opt = torch.optim.Adam(model.parameters(), lr=LR)
ce = nn.CrossEntropyLoss(weight=torch.tensor([0.5, 1., 1., 2.]))
hist = []

# %%
with profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=1, warmup=1, active=3, repeat=1), record_shapes=True, with_stack=True) as prof:
    for it in range(5):
        x, y = make_batch()
        opt.zero_grad()
        with record_function("forward"):
            out = model(x)
        with record_function("loss"):
            l1 = ce(out, y)
            l2 = dice(out, y)
            loss = l1 + 0.5 * l2
        loss.backward()
        opt.step()
        with torch.no_grad():
            pred = out.argmax(1)
            m = iou(pred, y)
        hist.append((loss.item(), m))
        prof.step()

print(hist)
