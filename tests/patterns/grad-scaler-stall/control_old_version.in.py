# at: scaler.step(optimizer)
# torch: 1.13.1
import torch


def main(model, batches, scaler):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for x in batches:
        scaler.scale(model(x).mean()).backward()
        scaler.step(optimizer)
        scaler.update()
