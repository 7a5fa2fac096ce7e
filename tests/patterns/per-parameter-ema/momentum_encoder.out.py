# at: param_k.data = param_k.data * m
import copy

import torch
from torch import nn


@torch.no_grad()
def momentum_update(query_encoder, key_encoder, m=0.99):
    """The key encoder follows the query encoder."""
    pairs = [
        (param_k.data, param_q.data)
        for param_q, param_k in zip(query_encoder.parameters(), key_encoder.parameters())
    ]
    torch._foreach_lerp_([old for old, _ in pairs], [new for _, new in pairs], 1.0 - m)


def run():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Conv2d(4, 2, 1))
    keys = copy.deepcopy(net)
    for _ in range(3):
        with torch.no_grad():
            for p in net.parameters():
                p.add_(torch.rand_like(p))
        momentum_update(net, keys)
    return list(keys.parameters())
