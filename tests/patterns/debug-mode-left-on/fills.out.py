# at: torch.use_deterministic_algorithms(True)
# fix: unsafe
import torch

torch.manual_seed(0)
torch.use_deterministic_algorithms(True)
torch.utils.deterministic.fill_uninitialized_memory = False


def forward(net, x):
    return net(x)
