# at: self.mean = torch.tensor(
# confirmed: no
import numpy as np
import torch


class Loader:
    def __init__(self, mean=(0.5, 0.4, 0.3), std=(0.2, 0.2, 0.2)):
        self.mean = torch.tensor([x * 255 for x in mean]).view(1, 3, 1, 1)
        self.std = torch.from_numpy(np.array(std)).float()
