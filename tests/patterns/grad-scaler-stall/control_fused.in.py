# at: scaler.step(optimizer)
# confirmed: no
import torch


def main(model, batches):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    scaler = torch.amp.GradScaler()
    for x in batches:
        scaler.scale(model(x).mean()).backward()
        scaler.step(optimizer)
        scaler.update()
