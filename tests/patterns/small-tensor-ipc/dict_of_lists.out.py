# at: for batch in loader:
# line: return {"images"
# fix: unsafe
from torch import stack
from torch.utils.data import DataLoader
import torch

torch.multiprocessing.set_sharing_strategy("file_system")


def collate(batch):
    boxes = [item["boxes"] for item in batch]
    return {"images": stack([item["image"] for item in batch]), "boxes": boxes}


def train(data):
    loader = DataLoader(data, 8, num_workers=4, collate_fn=collate)
    for batch in loader:
        print(batch["boxes"])
