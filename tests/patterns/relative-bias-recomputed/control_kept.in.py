# at: bias = self.bias_table[self.index].permute(2, 0, 1)
# confirmed: no
import torch.nn as nn


class Attention(nn.Module):
    kept = None

    def bias(self):
        if self.training or self.kept is None:
            bias = self.bias_table[self.index].permute(2, 0, 1)
            self.kept = bias
        return self.kept
