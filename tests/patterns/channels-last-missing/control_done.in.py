# at: outputs = model(x)
# confirmed: no
import torch
from torchvision.models import resnet18

model = resnet18().cuda()
model = model.to(memory_format=torch.channels_last)


def step(x):
    outputs = model(x)
    return outputs
