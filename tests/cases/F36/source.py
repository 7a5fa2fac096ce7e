# slug: small-tensor-ipc
# verdict: fault
# at: return imgs, [s["target"] for s in samples]
# at: def collate(samples):
# fix: unsafe
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Coco(Dataset):
    def __init__(self, count=256):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        n = 1 + i % 5
        target = {
            "boxes": torch.rand(n, 4),
            "labels": torch.randint(90, (n,)),
            "area": torch.rand(n),
            "iscrowd": torch.zeros(n),
            "image_id": torch.tensor([i]),
            "orig_size": torch.tensor([480, 640]),
            "size": torch.tensor([64, 64]),
        }
        return {"img": torch.rand(3, 64, 64), "target": target}


def collate(samples):
    imgs = torch.stack([s["img"] for s in samples])
    return imgs, [s["target"] for s in samples]


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, stride=4)
        self.head = nn.Linear(8, 4)

    def forward(self, x):
        return self.head(self.stem(x).relu().mean((2, 3)))


def main(profiler):
    loader = DataLoader(Coco(), batch_size=16, num_workers=1, collate_fn=collate)
    model = Detector()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step, (imgs, targets) in enumerate(loader):
        boxes = torch.stack([t["boxes"].mean(0) for t in targets])
        loss = (model(imgs) - boxes).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        profiler.step()
        if step == 7:
            break
