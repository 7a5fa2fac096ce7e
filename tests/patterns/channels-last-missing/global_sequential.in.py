# at: outputs = model(inputs)
# line: model = torch.nn.Sequential(
import torch

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Conv2d(3, 8, 3),
    torch.nn.BatchNorm2d(8),
).to(
    device  # the first one
)


def train_step(inputs, labels, criterion):
    inputs = inputs.to(device, non_blocking=True)
    labels = labels.to(device, non_blocking=True)
    outputs = model(inputs)
    return criterion(outputs.mean((2, 3)), labels)


def run():
    return train_step(torch.ones(2, 3, 5, 5), torch.tensor([1, 2]), torch.nn.functional.cross_entropy)
