# slug: host-thread-contention
# verdict: fault
# at: return cv2.warpAffine(
# at: import cv2
# fix: safe
import cv2
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

M = np.float32([[1, 0, 8], [0, 1, 8]])


def worker_transform(img):
    return cv2.warpAffine(cv2.resize(img, (640, 640)), M, (640, 640))


class Coco(Dataset):
    def __init__(self, images):
        self.images = images

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        return torch.from_numpy(worker_transform(self.images[i])).permute(2, 0, 1)


def train(images, model, optimizer, profiler):
    loader = DataLoader(Coco(images), batch_size=2, num_workers=4, pin_memory=True, persistent_workers=True)
    for batch in loader:
        loss = model(batch.cuda(non_blocking=True).float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        profiler.step()
