# at: optimizer.step()
# confirmed: no
import torch


def main(model, batches):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for x in batches:
        model(x).mean().backward()
        optimizer.step()
