# at: t.data.lerp_(s.data, 0.1)
# fix: unsafe
import copy

import torch
from torch import nn


def follow(student, teacher, model_dtype=torch.bfloat16):
    student.to(torch.float32)
    pairs = [
        (t.data, s.data)
        for (_, s), (_, t) in zip(student.named_parameters(), teacher.named_parameters())
    ]
    torch._foreach_lerp_([old for old, _ in pairs], [new for _, new in pairs], 0.1)


def served(teacher):
    return teacher.bfloat16()


def run():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Conv2d(4, 2, 1))
    teacher = copy.deepcopy(net)
    for _ in range(3):
        with torch.no_grad():
            for p in net.parameters():
                p.add_(torch.rand_like(p))
        follow(net, teacher)
    return list(teacher.parameters())
