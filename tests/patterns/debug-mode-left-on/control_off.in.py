# at: loss.backward()
# confirmed: no
import torch

torch.autograd.set_detect_anomaly(False)
torch.use_deterministic_algorithms(False)


def train(loss):
    loss.backward()
