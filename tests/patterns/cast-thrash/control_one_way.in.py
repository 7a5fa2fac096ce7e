# at: logits.float()
# confirmed: no
import torch.nn.functional as F


def loss(logits, target):
    return F.cross_entropy(logits.float(), target)
