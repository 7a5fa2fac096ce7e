# at: logits + prior
# line: from_numpy(log_prior)
# device: cpu
import numpy as np
import torch
import torch.nn.functional as F

counts = np.bincount(np.arange(40) % 4, minlength=4)
log_prior = np.log(counts / counts.sum())
prior = torch.from_numpy(log_prior).float().view(1, -1, 1, 1)  # broadcast over pixels


def seg_loss(logits, target):
    logp = F.log_softmax(logits + prior, 1)
    return F.nll_loss(logp, target)


def run():
    torch.manual_seed(0)
    logits = torch.randn(2, 4, 8, 8, requires_grad=True)
    loss = seg_loss(logits, torch.randint(0, 4, (2, 8, 8)))
    loss.backward()
    return loss.detach().float(), logits.grad
