# at: out = model(x)
# confirmed: no
import torch


@torch.no_grad()
def evaluate(model, loader):
    for x in loader:
        out = model(x)
        print(out.argmax())
