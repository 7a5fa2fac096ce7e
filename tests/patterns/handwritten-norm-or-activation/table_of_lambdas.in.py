# at: ACTIVATIONS = {
# line: "swish": lambda t
import torch
import torch.nn.functional as F

ACTIVATIONS = {
    "relu": F.relu,
    "swish": lambda t: t * torch.sigmoid(t),
}


def run():
    x = torch.linspace(-3, 3, 12, requires_grad=True)
    y = ACTIVATIONS["swish"](x)
    y.sum().backward()
    return y, x.grad
