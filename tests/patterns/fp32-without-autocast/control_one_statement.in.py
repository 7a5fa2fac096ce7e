# at: criterion(model(x), y).backward()
from torch import nn

model = nn.Linear(8, 8).cuda()
criterion = nn.MSELoss()


def step(x, y):
    criterion(model(x), y).backward()
