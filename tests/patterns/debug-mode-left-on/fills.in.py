# at: torch.use_deterministic_algorithms(True)
# fix: unsafe
import torch

torch.manual_seed(0)
torch.use_deterministic_algorithms(True)


def forward(net, x):
    return net(x)
