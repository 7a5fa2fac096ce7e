"""Programs of differing styles, by name."""

from __future__ import annotations

_HEAD = """
import torch
import torch.nn as nn
import torch.nn.functional as F
"""

PROGRAMS = {
    "training_loop": _HEAD
    + """
class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv = nn.Conv2d(width, width, 3, padding=1)  # built
        self.norm = nn.BatchNorm2d(width)  # built

    def forward(self, x):
        y = self.norm(self.conv(x))
        return F.relu(y + x)


class Net(nn.Module):
    def __init__(self, width=8, depth=3):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, stride=2)  # built
        self.blocks = nn.ModuleList([Block(width) for _ in range(depth)])  # built
        self.head = nn.Linear(width, 5)  # built

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        x = x.mean((2, 3))
        return self.head(x)


def main():
    net = Net()
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    loss_of = nn.CrossEntropyLoss()
    for step in range(3):
        x, y = torch.randn(4, 3, 16, 16), torch.randint(0, 5, (4,))
        loss = loss_of(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 2 == 0:
            print(loss.item())


main()
""",
    "functional": _HEAD
    + """
def attention(q, k, v):
    scores = q @ k.transpose(-2, -1)
    scores = scores / q.shape[-1] ** 0.5
    weights = scores.softmax(-1)
    return weights @ v


def layer(x, w):
    q, k, v = F.linear(x, w["qkv"]).chunk(3, -1)
    x = x + attention(q, k, v)
    x = F.layer_norm(x, (16,))
    hidden = F.gelu(F.linear(x, w["up"]))
    return x + F.linear(hidden, w["down"])


weights = [
    {"qkv": torch.randn(48, 16), "up": torch.randn(64, 16), "down": torch.randn(16, 64)} for _ in range(2)
]
with torch.no_grad():
    for _ in range(3):
        x = torch.rand(2, 6, 16)
        for w in weights:
            x = layer(x, w)
        x = x.flatten(1)
        print(float(x.sum()))
""",
    "unknown_sizes": _HEAD
    + """
import json
import os

CONFIG = json.loads(os.environ.get("NO_SUCH_CONFIG", '{"width": 12, "depth": 2}'))


class Mixer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)  # built
        self.up = nn.Linear(width, 2 * width)  # built
        self.down = nn.Linear(2 * width, width)  # built

    def forward(self, x):
        y = self.norm(x)
        y = self.up(y)
        y = torch.tanh(y)
        y = self.down(y)
        return x + y


class Model(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.embed = nn.Linear(7, config["width"])  # built
        self.layers = nn.Sequential(*[Mixer(config["width"]) for _ in range(config["depth"])])  # built

    def forward(self, x):
        x = self.embed(x)
        x = self.layers(x)
        return x.amax(1)


model = Model(CONFIG).eval()
with torch.inference_mode():
    for _ in range(4):
        out = model(torch.ones(2, 5, 7))
        out = out.sigmoid()
        best = out.argmax(-1)
""",
    "trainer_class": _HEAD
    + """
import contextlib
from dataclasses import dataclass


@dataclass
class Config:
    hidden: int = 24
    classes: int = 4


class Model(nn.Module):
    def __init__(self, cfg: Config):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(10, cfg.hidden), nn.GELU(), nn.Dropout(0.1))  # built
        self.head = nn.Linear(cfg.hidden, cfg.classes)  # built

    def forward(self, x):
        return self.head(self.body(x))

    def training_step(self, batch):
        x, y = batch
        logits = self(x)
        loss = F.cross_entropy(logits, y)
        penalty = logits.pow(2).mean()
        return loss + 0.1 * penalty


class Trainer:
    def __init__(self, model, steps):
        self.model, self.steps = model, steps
        self.optimizer = torch.optim.AdamW(model.parameters())

    @contextlib.contextmanager
    def timed(self, what):
        yield what

    def batches(self):
        for _ in range(self.steps):
            yield torch.rand(8, 10), torch.randint(0, 4, (8,))

    def fit(self):
        for number, batch in enumerate(self.batches()):
            with self.timed("step"):
                loss = self.model.training_step(batch)
            self.optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
        return loss.detach()


if __name__ == "__main__":
    Trainer(Model(Config()), steps=3).fit()
""",
    "loader": _HEAD
    + """
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        image = torch.rand(3, 12, 12)
        image = image.flip(-1)
        image = image.sub(0.5)
        return image, torch.tensor(index % 3)


def evaluate(net, loader):
    hits = 0
    with torch.no_grad():
        for image, label in loader:
            logits = net(image)
            hits += logits.argmax(1).eq(label).sum().item()
    return hits


net = nn.Sequential(nn.Conv2d(3, 6, 5), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 3))  # built
print(evaluate(net, DataLoader(Images(), batch_size=4)))
""",
    "registry_and_closures": _HEAD
    + """
MODELS = {}


def register(name):
    def wrap(fn):
        MODELS[name] = fn
        return fn

    return wrap


class Gate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * torch.cos(x)


class Tower(nn.Module):
    def __init__(self, width, activation):
        super().__init__()
        for i in range(2):
            setattr(self, f"fc{i}", nn.Linear(width, width))  # built
        self.activation = activation

    def forward(self, x):
        for i in range(2):
            x = getattr(self, f"fc{i}")(x)
            x = self.activation(x)
        return x


@register("tower")
def tower(width=6):
    return Tower(width, Gate.apply)


@register("wide")
def wide(width=32):
    return Tower(width, F.silu)


model = MODELS["tower"]()
for _ in range(3):
    out = model(torch.ones(4, 6, requires_grad=True))
    loss = out.abs().sum()
    loss.backward()
""",
    "boxes": _HEAD
    + """
def iou(a, b):
    low = torch.maximum(a[:, None, :2], b[None, :, :2])
    high = torch.minimum(a[:, None, 2:], b[None, :, 2:])
    size = (high - low).clamp(min=0)
    inter = size[..., 0] * size[..., 1]
    area = (a[:, 2] - a[:, 0]) * (a[:, 3] - a[:, 1])
    return inter / (area[:, None] + 1e-6)


def keep(boxes, scores):
    order = scores.argsort(descending=True)
    kept = []
    while order.numel() > 0:
        kept.append(order[0])
        overlap = iou(boxes[order[:1]], boxes[order])
        order = order[overlap.squeeze(0) < 0.5]
    return torch.stack(kept)


boxes = torch.tensor([[0.0, 0, 4, 4], [1, 1, 5, 5], [0, 0, 4, 4.5], [7, 7, 9, 9]])
scores = torch.tensor([0.9, 0.8, 0.7, 0.6])
for _ in range(3):
    print(keep(boxes, scores).tolist())
""",
}
