# at: tokens = maps
import torch


def class_token(maps):
    tokens = maps.flatten(2).transpose(1, 2).contiguous()[:, 0]
    return tokens / tokens.norm(dim=-1, keepdim=True)


def run():
    torch.manual_seed(0)
    return class_token(torch.randn(2, 6, 4, 4))
