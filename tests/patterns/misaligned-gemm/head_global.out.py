# at: self.fc(x.flatten(1))
# line: self.fc = nn.Linear
# fix: unsafe
import torch.nn as nn

N_CLASSES = 91


class Coco(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2048, (N_CLASSES + 7) // 8 * 8)

    def forward(self, x):
        x = self.fc(x.flatten(1))[..., :N_CLASSES]
        return x
