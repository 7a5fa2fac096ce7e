# at: y = model(x)
# line: model.load_state_dict(torch.load(path))
# fix: unsafe
import torch
from torch import nn

model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU())
model.eval()
path = "model.pt"
model.load_state_dict(torch.load(path))


def predict(x):
    with torch.no_grad():
        y = model(x)
    return y


def tune(x, y, optimizer):
    model.train()
    nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
