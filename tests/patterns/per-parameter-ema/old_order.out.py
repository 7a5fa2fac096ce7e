# at: ema_param.data.mul_(alpha)
import copy

import torch


def update_ema_variables(model, ema_model, alpha, global_step):
    alpha = min(1 - 1 / (global_step + 1), alpha)
    pairs = [
        (ema_param.data, param.data)
        for ema_param, param in zip(ema_model.parameters(), model.parameters())
    ]
    torch._foreach_lerp_([old for old, _ in pairs], [new for _, new in pairs], 1 - alpha)


def run():
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 2)
    ema = copy.deepcopy(model)
    torch.nn.init.ones_(model.weight)
    update_ema_variables(model, ema, 0.75, 8)
    return list(ema.parameters())
