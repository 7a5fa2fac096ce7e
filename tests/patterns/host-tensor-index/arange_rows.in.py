# at: picked = scores[rows, labels]
# line: rows = torch.arange(
import torch


def margin(scores, labels):
    rows = torch.arange(scores.shape[0])
    picked = scores[rows, labels]
    return (scores.amax(1) - picked).mean()


def run():
    torch.manual_seed(0)
    return margin(torch.randn(6, 4), torch.tensor([0, 1, 2, 3, 0, 1]))
