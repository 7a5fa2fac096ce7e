# at: cost = 5 * torch.cdist(boxes, targets[:, :4], p=1) - giou
import torch


def matching_cost(boxes, targets, giou):
    cost = 5 * (boxes.unsqueeze(-2) - targets[:, :4].unsqueeze(-3)).abs().sum(-1) - giou
    return cost


def run():
    torch.manual_seed(0)
    boxes, targets = torch.rand(6, 4, requires_grad=True), torch.rand(3, 5)
    out = matching_cost(boxes, targets, torch.rand(6, 3))
    out.sum().backward()
    return out, boxes.grad
