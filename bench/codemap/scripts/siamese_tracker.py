from __future__ import annotations

import collections
import enum
from abc import ABC, abstractmethod

import torch
import torch.nn.functional as F
from torch import nn
from torch.profiler import profile, schedule


class State(enum.Enum):
    NEW = 1
    TRACKED = 2
    LOST = 3


class Backbone(nn.Module, ABC):
    @abstractmethod
    def features(self, x): ...

    def forward(self, x):
        return self.features(x)


class AlexNetish(Backbone):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Sequential(nn.Conv2d(3, 24, 7, 2), nn.BatchNorm2d(24), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2))
        self.conv2 = nn.Sequential(nn.Conv2d(24, 48, 5, 1, groups=2), nn.BatchNorm2d(48), nn.ReLU(inplace=True))
        self.conv3 = nn.Conv2d(48, 64, 3)

    def features(self, x):
        for name, child in self.named_children():
            x = child(x)
        return x


class XCorr:
    @staticmethod
    def depthwise(z, x):
        b, c, h, w = x.shape
        x = x.reshape(1, b * c, h, w)
        z = z.reshape(b * c, 1, z.shape[2], z.shape[3])
        out = F.conv2d(x, z, groups=b * c)
        return out.view(b, c, out.shape[2], out.shape[3])


class RPNHead(nn.Module):
    def __init__(self, ch, anchors):
        super().__init__()
        self.anchors = anchors
        for branch, n in (("cls", 2), ("loc", 4)):
            setattr(self, f"{branch}_z", nn.Conv2d(ch, ch, 3))
            setattr(self, f"{branch}_x", nn.Conv2d(ch, ch, 3))
            setattr(self, f"{branch}_out", nn.Sequential(nn.Conv2d(ch, ch, 1), nn.ReLU(), nn.Conv2d(ch, n * anchors, 1)))

    def branch(self, name, z, x):
        z = getattr(self, f"{name}_z")(z)
        x = getattr(self, f"{name}_x")(x)
        return getattr(self, f"{name}_out")(XCorr.depthwise(z, x))

    def forward(self, z, x):
        return self.branch("cls", z, x), self.branch("loc", z, x)


class Tracker:
    def __init__(self, net: "SiamRPN", window: float = 0.3):
        self.net, self.influence = net, window
        self.state = State.NEW
        self.history: collections.deque = collections.deque(maxlen=5)

    def init(self, frame, box):
        self.box = torch.tensor(box, dtype=torch.float32)
        self.z = self.net.backbone(self.crop(frame, 47)[None])
        hann = torch.hann_window(self.net.out_size, periodic=False)
        self.window = torch.outer(hann, hann).flatten().repeat(self.net.k)
        self.state = State.TRACKED

    def crop(self, frame, size):
        cx, cy, w, h = self.box.tolist()
        half = int(max(w, h))
        x0, y0 = max(0, int(cx) - half), max(0, int(cy) - half)
        patch = frame[:, y0:y0 + 2 * half, x0:x0 + 2 * half]
        if min(patch.shape[1:]) == 0:
            patch = frame
        return F.interpolate(patch[None], (size, size), mode="bilinear", align_corners=False)[0]

    def update(self, frame):
        x = self.net.backbone(self.crop(frame, 79)[None])
        cls, loc = self.net.head(self.z, x)
        score = (cls.permute(1, 2, 3, 0)
                    .contiguous()
                    .view(2, -1)
                    .permute(1, 0)
                    .softmax(1)[:, 1])
        delta = loc.permute(1, 2, 3, 0).contiguous().view(4, -1)
        pscore = score * (1 - self.influence) + self.window[: score.numel()] * self.influence
        best = pscore.argmax()
        lr = score[best] * 0.3
        move = delta[:, best]
        self.box[:2] = self.box[:2] + move[:2] * 0.1
        self.box[2:] = (self.box[2:] * (1 - lr) + self.box[2:] * move[2:].exp().clamp(0.5, 2) * lr).clamp(8, 60)
        self.box[0].clamp_(10, frame.shape[2] - 10)
        self.box[1].clamp_(10, frame.shape[1] - 10)
        self.history.append(self.box.clone())
        if score[best] < 0.1:
            self.state = State.LOST
            return None
        return torch.stack(list(self.history)).mean(0)


class SiamRPN(nn.Module):
    k = 3

    def __init__(self):
        super().__init__()
        self.backbone = AlexNetish()
        self.head = RPNHead(64, self.k)
        with torch.no_grad():
            z, x = torch.zeros(1, 3, 47, 47), torch.zeros(1, 3, 79, 79)
            self.out_size = self(z, x)[0].shape[-1]

    def forward(self, z, x):
        return self.head(self.backbone(z), self.backbone(x))


def video(n, size=120):
    base = torch.rand(3, size, size)
    for t in range(n):
        yield torch.roll(base, shifts=(t, 2 * t), dims=(1, 2)) + 0.01 * torch.randn(3, size, size)


@torch.inference_mode()
def main():
    net = SiamRPN().eval()
    trackers = [Tracker(net) for _ in range(2)]
    with profile(schedule=schedule(wait=1, warmup=1, active=4)) as prof:
        for number, frame in enumerate(video(7)):
            for i, tracker in enumerate(trackers):
                match tracker.state:
                    case State.NEW:
                        tracker.init(frame, [40 + 20 * i, 50, 20, 30])
                    case State.TRACKED:
                        tracker.update(frame)
                    case _:
                        tracker.state = State.NEW
            if number:
                prof.step()


main()
