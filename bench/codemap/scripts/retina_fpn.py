"""One-stage detector, inference over a folder of images (faked)."""
import math
from typing import Dict, List, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class ConvBNReLU(nn.Sequential):
    def __init__(self, cin: int, cout: int, k: int = 3, s: int = 1):
        super().__init__(nn.Conv2d(cin, cout, k, s, (k - 1) // 2, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True))


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(ConvBNReLU(3, 16, 7, 2), nn.MaxPool2d(3, 2, 1))
        self.c3 = nn.Sequential(ConvBNReLU(16, 32, s=2), ConvBNReLU(32, 32))
        self.c4 = nn.Sequential(ConvBNReLU(32, 64, s=2), ConvBNReLU(64, 64))
        self.c5 = nn.Sequential(ConvBNReLU(64, 96, s=2), ConvBNReLU(96, 96))

    def forward(self, x: Tensor) -> List[Tensor]:
        x = self.stem(x)
        c3 = self.c3(x)
        c4 = self.c4(c3)
        c5 = self.c5(c4)
        return [c3, c4, c5]


class FPN(nn.Module):
    def __init__(self, in_channels: List[int], out_channels: int):
        super().__init__()
        self.inner_blocks = nn.ModuleList()
        self.layer_blocks = nn.ModuleList()
        for c in in_channels:
            self.inner_blocks.append(nn.Conv2d(c, out_channels, 1))
            self.layer_blocks.append(nn.Conv2d(out_channels, out_channels, 3, padding=1))

    def forward(self, xs: List[Tensor]) -> List[Tensor]:
        last_inner = self.inner_blocks[-1](xs[-1])
        results = [self.layer_blocks[-1](last_inner)]
        for idx in range(len(xs) - 2, -1, -1):
            inner_lateral = self.inner_blocks[idx](xs[idx])
            feat_shape = inner_lateral.shape[-2:]
            inner_top_down = F.interpolate(last_inner, size=feat_shape, mode="nearest")
            last_inner = inner_lateral + inner_top_down
            results.insert(0, self.layer_blocks[idx](last_inner))
        p6 = F.max_pool2d(results[-1], 1, 2, 0)
        results.append(p6)
        return results


class Head(nn.Module):
    def __init__(self, ch: int, num_anchors: int, num_classes: int, depth: int = 2):
        super().__init__()
        tower = []
        for _ in range(depth):
            tower += [nn.Conv2d(ch, ch, 3, padding=1), nn.GroupNorm(4, ch), nn.ReLU()]
        self.cls_tower = nn.Sequential(*tower)
        self.cls_logits = nn.Conv2d(ch, num_anchors * num_classes, 3, padding=1)
        self.bbox_pred = nn.Conv2d(ch, num_anchors * 4, 3, padding=1)
        self.num_classes = num_classes
        nn.init.constant_(self.cls_logits.bias, -math.log((1 - 0.01) / 0.01))

    def forward(self, feats: List[Tensor]) -> Tuple[Tensor, Tensor]:
        all_cls, all_box = [], []
        for f in feats:
            t = self.cls_tower(f)
            cls = self.cls_logits(t)
            N, _, H, W = cls.shape
            cls = cls.view(N, -1, self.num_classes, H, W)
            cls = cls.permute(0, 3, 4, 1, 2)
            cls = cls.reshape(N, -1, self.num_classes)
            all_cls.append(cls)

            box = self.bbox_pred(t)
            box = box.view(N, -1, 4, H, W).permute(0, 3, 4, 1, 2).reshape(N, -1, 4)
            all_box.append(box)
        return torch.cat(all_cls, dim=1), torch.cat(all_box, dim=1)


class AnchorGenerator(nn.Module):
    def __init__(self, sizes=((16,), (32,), (64,), (128,)), aspect_ratios=(0.5, 1.0, 2.0)):
        super().__init__()
        self.cell_anchors = [self.generate(s, aspect_ratios) for s in sizes]

    def generate(self, scales, ratios):
        scales = torch.as_tensor(scales, dtype=torch.float32)
        h_ratios = torch.sqrt(torch.as_tensor(ratios))
        w_ratios = 1 / h_ratios
        ws = (w_ratios[:, None] * scales[None, :]).view(-1)
        hs = (h_ratios[:, None] * scales[None, :]).view(-1)
        return (torch.stack([-ws, -hs, ws, hs], dim=1) / 2).round()

    def forward(self, image: Tensor, feats: List[Tensor]) -> Tensor:
        anchors = []
        for f, base in zip(feats, self.cell_anchors):
            gh, gw = f.shape[-2:]
            sy, sx = image.shape[-2] // gh, image.shape[-1] // gw
            shifts_x = torch.arange(0, gw, dtype=torch.int32) * sx
            shifts_y = torch.arange(0, gh, dtype=torch.int32) * sy
            shift_y, shift_x = torch.meshgrid(shifts_y, shifts_x, indexing="ij")
            shift_x = shift_x.reshape(-1)
            shift_y = shift_y.reshape(-1)
            shifts = torch.stack((shift_x, shift_y, shift_x, shift_y), dim=1)
            anchors.append((shifts.view(-1, 1, 4) + base.view(1, -1, 4)).reshape(-1, 4))
        return torch.cat(anchors)


def decode(rel: Tensor, anchors: Tensor) -> Tensor:
    widths = anchors[:, 2] - anchors[:, 0]
    heights = anchors[:, 3] - anchors[:, 1]
    ctr_x = anchors[:, 0] + 0.5 * widths
    ctr_y = anchors[:, 1] + 0.5 * heights
    dx, dy, dw, dh = rel.unbind(-1)
    dw = torch.clamp(dw, max=math.log(1000.0 / 16))
    dh = torch.clamp(dh, max=math.log(1000.0 / 16))
    pred_ctr_x = dx * widths + ctr_x
    pred_ctr_y = dy * heights + ctr_y
    pred_w = torch.exp(dw) * widths
    pred_h = torch.exp(dh) * heights
    return torch.stack((pred_ctr_x - pred_w / 2, pred_ctr_y - pred_h / 2,
                        pred_ctr_x + pred_w / 2, pred_ctr_y + pred_h / 2), dim=-1)


def box_iou(a: Tensor, b: Tensor) -> Tensor:
    area_a = (a[:, 2] - a[:, 0]) * (a[:, 3] - a[:, 1])
    area_b = (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1])
    lt = torch.max(a[:, None, :2], b[:, :2])
    rb = torch.min(a[:, None, 2:], b[:, 2:])
    wh = (rb - lt).clamp(min=0)
    inter = wh[:, :, 0] * wh[:, :, 1]
    return inter / (area_a[:, None] + area_b - inter + 1e-7)


def nms(boxes: Tensor, scores: Tensor, thr: float) -> Tensor:
    order = scores.argsort(descending=True)
    keep = []
    while order.numel() > 0:
        i = order[0]
        keep.append(i)
        if order.numel() == 1:
            break
        rest = order[1:]
        iou = box_iou(boxes[i].unsqueeze(0), boxes[rest]).squeeze(0)
        order = rest[iou <= thr]
    if not keep:
        return torch.empty(0, dtype=torch.long)
    return torch.stack(keep)


class RetinaNet(nn.Module):
    def __init__(self, num_classes: int = 5):
        super().__init__()
        self.backbone = Backbone()
        self.fpn = FPN([32, 64, 96], 32)
        self.anchors = AnchorGenerator()
        self.head = Head(32, 3, num_classes)
        self.register_buffer("mean", torch.tensor([0.485, 0.456, 0.406]).view(1, 3, 1, 1))
        self.register_buffer("std", torch.tensor([0.229, 0.224, 0.225]).view(1, 3, 1, 1))
        self.topk, self.thr = 40, 0.5

    def postprocess(self, cls: Tensor, box: Tensor, anchors: Tensor, size) -> List[Dict[str, Tensor]]:
        out = []
        for logits, rel in zip(cls, box):
            scores = logits.sigmoid().flatten()
            top, idx = scores.topk(self.topk)
            anchor_idx = torch.div(idx, logits.shape[-1], rounding_mode="floor")
            labels = idx % logits.shape[-1]
            boxes = decode(rel[anchor_idx], anchors[anchor_idx])
            boxes[:, 0::2].clamp_(0, size[1])
            boxes[:, 1::2].clamp_(0, size[0])
            ws, hs = boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1]
            ok = (ws > 1) & (hs > 1)
            boxes, top, labels = boxes[ok], top[ok], labels[ok]
            keep = nms(boxes + labels[:, None] * 1000., top, self.thr)
            out.append({"boxes": boxes[keep], "scores": top[keep], "labels": labels[keep]})
        return out

    @torch.no_grad()
    def forward(self, images: List[Tensor]) -> List[Dict[str, Tensor]]:
        h = max(i.shape[-2] for i in images)
        w = max(i.shape[-1] for i in images)
        batch = images[0].new_zeros((len(images), 3, h, w))
        for img, pad in zip(images, batch):
            pad[:, : img.shape[1], : img.shape[2]].copy_(img)
        batch = (batch - self.mean) / self.std
        feats = self.fpn(self.backbone(batch))
        anchors = self.anchors(batch, feats)
        cls, box = self.head(feats)
        return self.postprocess(cls, box, anchors, (h, w))


def main() -> None:
    model = RetinaNet().eval()
    total = 0
    with torch.profiler.profile(
        schedule=torch.profiler.schedule(wait=0, warmup=1, active=2),
    ) as prof:
        for i in range(3):
            images = [torch.rand(3, 96, 128), torch.rand(3, 128, 112)]
            detections = model(images)
            for d in detections:
                total += len(d["boxes"])
            prof.step()
    print(total)


if __name__ == "__main__":
    main()
