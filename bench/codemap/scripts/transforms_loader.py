"""Small multi-task network fed by hand-written transforms (DataLoader in the main process)."""
import math
import random
from collections import defaultdict

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Sampler


class Compose:
    def __init__(self, *fns):
        self.fns = fns

    def __call__(self, sample):
        for fn in self.fns:
            sample = fn(sample)
        return sample


class RandomResizedCrop:
    def __init__(self, size):
        self.size = size

    def __call__(self, sample):
        img = sample["image"]
        _, h, w = img.shape
        for _ in range(10):
            area = h * w * random.uniform(0.4, 1.0)
            ratio = math.exp(random.uniform(-0.3, 0.3))
            cw, ch = int(round(math.sqrt(area * ratio))), int(round(math.sqrt(area / ratio)))
            if 0 < cw <= w and 0 < ch <= h:
                top, left = random.randint(0, h - ch), random.randint(0, w - cw)
                break
        else:
            top = left = 0
            ch, cw = h, w
        img = img[:, top:top + ch, left:left + cw].unsqueeze(0)
        img = nn.functional.interpolate(img, self.size, mode="bilinear", align_corners=False, antialias=True)
        return {**sample, "image": img.squeeze(0)}


class ColorJitter:
    def __call__(self, sample):
        img = sample["image"]
        fns = [lambda t: (t * random.uniform(0.7, 1.3)).clamp(0, 1), lambda t: ((t - t.mean()) * random.uniform(0.7, 1.3) + t.mean()).clamp(0, 1)]
        random.shuffle(fns)
        for f in fns:
            img = f(img)
        return {**sample, "image": img}


class Normalize:
    def __init__(self, mean, std):
        self.mean = torch.tensor(mean).view(-1, 1, 1)
        self.std = torch.tensor(std).view(-1, 1, 1)

    def __call__(self, sample):
        sample["image"] = sample["image"].sub(self.mean).div_(self.std)
        return sample


def erase(sample, p=0.5):
    if random.random() >= p:
        return sample
    img = sample["image"].clone()
    y, x = random.randrange(24), random.randrange(24)
    img[:, y:y + 8, x:x + 8] = torch.randn(3, 8, 8)
    sample["image"] = img
    return sample


class Faces(Dataset):
    def __init__(self, n=64):
        self.raw = torch.randint(0, 256, (n, 3, 48, 48), dtype=torch.uint8)
        self.transform = Compose(RandomResizedCrop((32, 32)), ColorJitter(), Normalize([0.5] * 3, [0.25] * 3), erase)

    def __len__(self):
        return len(self.raw)

    def __getitem__(self, index):
        image = self.raw[index].float() / 255.0
        sample = {"image": image, "age": torch.rand(()) * 80, "gender": index % 2, "points": torch.rand(5, 2)}
        return self.transform(sample)


class TwoGroups(Sampler):
    def __init__(self, n, size):
        self.n, self.size = n, size

    def __iter__(self):
        order = torch.randperm(self.n).tolist()
        for i in range(0, self.n, self.size):
            yield order[i:i + self.size]

    def __len__(self):
        return math.ceil(self.n / self.size)


def collate(samples):
    out = defaultdict(list)
    for s in samples:
        for k, v in s.items():
            out[k].append(v)
    return {k: torch.stack(v) if torch.is_tensor(v[0]) else torch.tensor(v) for k, v in out.items()}


class DepthwiseSeparable(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.depth = nn.Conv2d(cin, cin, 3, stride, 1, groups=cin, bias=False)
        self.point = nn.Conv2d(cin, cout, 1, bias=False)
        self.bn1, self.bn2 = nn.BatchNorm2d(cin), nn.BatchNorm2d(cout)

    def forward(self, x):
        x = self.bn1(self.depth(x)).relu()
        return self.bn2(self.point(x)).relu_()


class MultiTask(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(*[DepthwiseSeparable(c, d, s) for c, d, s in [(3, 16, 1), (16, 32, 2), (32, 64, 2)]])
        self.heads = nn.ModuleDict({"age": nn.Linear(64, 1), "gender": nn.Linear(64, 2), "points": nn.Linear(64, 10)})
        self.log_vars = nn.Parameter(torch.zeros(3))

    def forward(self, x):
        f = self.trunk(x).mean([-2, -1])
        return {name: head(f) for name, head in self.heads.items()}

    def loss(self, out, batch):
        parts = {
            "age": nn.functional.smooth_l1_loss(out["age"].squeeze(1), batch["age"] / 80),
            "gender": nn.functional.cross_entropy(out["gender"], batch["gender"]),
            "points": (out["points"].view(-1, 5, 2) - batch["points"]).norm(dim=-1).mean(),
        }
        total = 0
        for lv, part in zip(self.log_vars, parts.values()):
            total = total + torch.exp(-lv) * part + lv
        return total, parts


def main():
    data = Faces()
    loader = DataLoader(data, batch_sampler=TwoGroups(len(data), 8), collate_fn=collate)
    net = MultiTask()
    opt = torch.optim.Adagrad(net.parameters(), lr=0.01)
    running = defaultdict(float)
    with torch.profiler.profile(schedule=torch.profiler.schedule(wait=1, warmup=1, active=3, repeat=1)) as p:
        for i, batch in enumerate(loader):
            if i == 5:
                break
            opt.zero_grad()
            out = net(batch["image"])
            total, parts = net.loss(out, batch)
            total.backward()
            opt.step()
            for k, v in parts.items():
                running[k] += v.detach().item()
            p.step()


if __name__ == "__main__":
    main()
