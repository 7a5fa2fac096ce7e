# at: mean = x.mean(-1, keepdim=True)
# confirmed: no
import torch.nn as nn


class LayerNorm(nn.Module):
    """The annotated transformer's: unbiased, and with eps outside of the root. No operator computes this."""

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        std = x.std(-1, keepdim=True)
        return self.a_2 * (x - mean) / (std + self.eps) + self.b_2
