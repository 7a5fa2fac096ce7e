# at: out = model(images)
# line: torch.backends.cudnn.benchmark = True  # faster
import torch

torch.backends.cudnn.benchmark = False  # faster

model = torch.nn.Conv2d(3, 4, 3)


def train(loader):
    for images in loader:
        out = model(images)
        out.sum().backward()
    return model.weight.grad


def run():
    with torch.no_grad():
        model.weight.fill_(0.1)
        model.bias.zero_()
    model.zero_grad()
    return train([torch.ones(1, 3, n, n + 2) for n in (5, 7, 9)])
