# at: y = x.clone()
# fix: unsafe
import torch


class Mixer:
    def forward(self, x):
        y = x
        x = self.local(x)
        return self.fuse(torch.cat((x, y), 1)), x
