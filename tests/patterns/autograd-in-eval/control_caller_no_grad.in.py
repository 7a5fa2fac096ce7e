# at: return model(x)
# caller: out = forward(model, x)
# confirmed: no
import torch


def forward(model, x):
    return model(x)


def evaluate(model, loader):
    with torch.inference_mode():
        for x in loader:
            out = forward(model, x)
