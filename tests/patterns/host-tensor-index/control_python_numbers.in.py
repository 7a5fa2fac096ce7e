# at: z[:, li, lj]
# line: li = torch.tensor
import torch


def interact(z):
    n = z.shape[1]
    li = torch.tensor([i for i in range(n) for j in range(i)])
    lj = torch.tensor([j for i in range(n) for j in range(i)])
    return z[:, li, lj]
