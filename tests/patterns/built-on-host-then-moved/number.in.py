# at: strides = [[torch.tensor(h // fh, dtype=torch.int64, device=dev),
import torch


def anchors(h, w, grids, dev):
    strides = [[torch.tensor(h // fh, dtype=torch.int64, device=dev),
                torch.tensor(w // fw, dtype=torch.int64, device=dev)] for fh, fw in grids]
    return strides


def run():
    return anchors(64, 32, [(8, 4), (4, 2)], torch.device("cpu"))
