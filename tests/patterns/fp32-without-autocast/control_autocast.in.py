# at: loss = model(x).sum()
# confirmed: no
import torch
from torch import nn

model = nn.Linear(8, 8).cuda()


def step(x):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = model(x).sum()
    loss.backward()
