# at: loss = model(x).sum()
# device: cuda 7.0
from torch import nn

model = nn.Linear(8, 8).cuda()


def step(x):
    loss = model(x).sum()
    loss.backward()
