# at: x = x.float()
# fix: unsafe
import torch


class Gate(torch.nn.Module):
    def forward(self, x, gate):
        y = torch.sigmoid(gate) * x + (x * x).clamp(max=6.0)
        return y
