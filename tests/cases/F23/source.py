# slug: python-loop-over-batch
# verdict: fault
# at: for i, im in enumerate(images):
# fix: none
# note: NaViT, inference: positions and ids are built image by image, the ids growing by a copy each time
import torch
import torch.nn.functional as F
from torch import nn


class NaViT(nn.Module):
    def __init__(self, dim=32, patch=8):
        super().__init__()
        self.patch = patch
        self.embed = nn.Linear(3 * patch * patch, dim)
        self.row, self.column = nn.Embedding(16, dim), nn.Embedding(16, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def places(self, images):
        p, dev = self.patch, images[0].device
        pos, ids = [], torch.empty(0, dtype=torch.long, device=dev)
        for i, im in enumerate(images):
            h, w = im.shape[-2] // p, im.shape[-1] // p
            pos.append(torch.stack(torch.meshgrid(torch.arange(h, device=dev), torch.arange(w, device=dev), indexing="ij"), -1).view(-1, 2))
            ids = F.pad(ids, (0, h * w), value=i)                       # grows by copy
        return torch.cat(pos), ids

    def forward(self, images, patches):
        pos, ids = self.places(images)
        x = self.embed(patches) + self.row(pos[:, 0]) + self.column(pos[:, 1])
        x = self.mlp(x)
        return torch.zeros(len(images), x.shape[1]).index_add_(0, ids, x)


def main(profiler):
    sizes = torch.randint(2, 5, (256, 2)) * 8
    images = [torch.rand(3, h, w) for h, w in sizes.tolist()]
    patches = torch.rand(int((sizes // 8).prod(1).sum()), 3 * 64)
    net = NaViT().eval()
    with torch.inference_mode():
        for _ in range(7):
            net(images, patches)
            profiler.step()
