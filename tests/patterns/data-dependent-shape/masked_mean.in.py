# at: return losses[valid].mean() + 0.1 * losses[valid].sum()
import torch
import torch.nn.functional as F


def masked_loss(logits, target):
    losses = F.cross_entropy(logits, target, ignore_index=255, reduction="none")
    valid = target != 255
    return losses[valid].mean() + 0.1 * losses[valid].sum()


def run():
    torch.manual_seed(0)
    target = torch.tensor([[0, 255, 2], [1, 1, 255]])
    return masked_loss(torch.randn(2, 4, 3), target)
