# slug: built-on-host-then-moved
# verdict: fault
# at: strides = [
# at: torch.tensor(img_w // fw
# fix: safe
# note: two-stage detection: the anchor generator builds stride scalars with torch.tensor(x, device=cuda)
import torch
from torch import nn


class AnchorGenerator(nn.Module):
    def __init__(self, size=32):
        super().__init__()
        self.register_buffer("cell", torch.tensor([[-size, -size, size, size]]) / 2)

    def forward(self, image, maps):
        img_h, img_w = image.shape[-2:]
        grids = [m.shape[-2:] for m in maps]
        dev = maps[0].device
        strides = [[torch.tensor(img_h // fh, dtype=torch.int64, device=dev),
                    torch.tensor(img_w // fw, dtype=torch.int64, device=dev)] for fh, fw in grids]
        return [self.grid(fh, fw, *stride) for (fh, fw), stride in zip(grids, strides)]

    def grid(self, fh, fw, stride_h, stride_w):
        ys = torch.arange(fh, device=self.cell.device) * stride_h
        xs = torch.arange(fw, device=self.cell.device) * stride_w
        y, x = torch.meshgrid(ys, xs, indexing="ij")
        return (torch.stack([x, y, x, y], dim=-1).view(-1, 1, 4) + self.cell).view(-1, 4)


def detect(model, anchors, image):
    maps = model(image)
    return maps, anchors(image, maps)


def result():
    maps = [torch.zeros(1, 8, 16, 16), torch.zeros(1, 8, 8, 8)]
    return AnchorGenerator()(torch.zeros(1, 3, 128, 128), maps)
