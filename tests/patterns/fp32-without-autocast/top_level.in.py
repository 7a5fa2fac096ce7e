# at: loss = criterion(model(x), y)
# fix: unsafe
import torch
from torch import nn

model = nn.Sequential(nn.Linear(8, 8), nn.ReLU()).cuda()
criterion = nn.MSELoss()
x, y = torch.randn(2, 4, 8, device="cuda")
loss = criterion(model(x), y)
loss.backward()
