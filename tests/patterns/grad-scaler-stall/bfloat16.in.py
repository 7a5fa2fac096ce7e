# at: scaler.step(optimizer)
# fix: unsafe
import torch
from torch.amp import GradScaler, autocast


def main(model, batches):
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3, momentum=0.9)
    scaler = GradScaler("cuda")
    for x in batches:
        with autocast("cuda", dtype=torch.float16):
            loss = model(x).mean()
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
