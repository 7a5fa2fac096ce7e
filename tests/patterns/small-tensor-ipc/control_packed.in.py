# at: for batch in loader:
# confirmed: no
import torch
from torch.utils.data import DataLoader


def collate(samples):
    images = torch.stack([s["image"] for s in samples])
    counts = torch.tensor([len(s["boxes"]) for s in samples])
    return images, {k: torch.cat([s[k] for s in samples]) for k in ("boxes", "labels")}, counts


def train(data):
    loader = DataLoader(data, batch_size=8, num_workers=4, collate_fn=collate)
    for batch in loader:
        print(batch[0].shape)
