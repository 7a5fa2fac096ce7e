# at: y = model(x)
# line: model.load_state_dict(torch.load(path))
# fix: unsafe
import torch
from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU())
model.eval()
path = "model.pt"
model.load_state_dict(torch.load(path))
for block in list(model.modules()):  # in eval mode a norm is a part of the convolution before it
    if type(block) is nn.Sequential:
        for i in range(len(block) - 1):
            if isinstance(block[i], nn.Conv2d) and isinstance(block[i + 1], nn.BatchNorm2d):
                block[i], block[i + 1] = fuse_conv_bn_eval(block[i], block[i + 1]), nn.Identity()


def predict(x):
    with torch.no_grad():
        y = model(x)
    return y


def tune(x, y, optimizer):
    model.train()
    nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
