# at: scaler.step(optimizer)
# device: cuda 7.0
import torch


def main(model, batches):
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
    scaler = torch.cuda.amp.GradScaler()
    for x in batches:
        with torch.cuda.amp.autocast():
            loss = model(x).mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
