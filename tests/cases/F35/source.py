# slug: host-thread-contention, dataloader-starved
# verdict: fault
# at: loader = DataLoader(ds, batch_size=64, num_workers=32, pin_memory=True)
# fix: unsafe
# note: started by OMP_NUM_THREADS=64 torchrun --nproc_per_node=8 train.py, which no Python source shows
import torch
from torch import nn
from torch.utils.data import DataLoader


def contrastive(video, text, temperature=0.07):
    sim = nn.functional.normalize(video) @ nn.functional.normalize(text).T / temperature
    return nn.functional.cross_entropy(sim, torch.arange(len(sim), device=sim.device))


def train(ds, model, optimizer, profiler):
    loader = DataLoader(ds, batch_size=64, num_workers=32, pin_memory=True)
    for video, text in loader:
        loss = contrastive(*model(video.cuda(non_blocking=True), text.cuda(non_blocking=True)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        profiler.step()
