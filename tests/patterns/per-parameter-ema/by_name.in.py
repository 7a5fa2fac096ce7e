# at: ema_param.data.mul_(decay)
import copy

import torch


class Averaged:
    def __init__(self, model):
        self.ema_model = copy.deepcopy(model)

    @torch.no_grad()
    def update(self, model, decay):
        model_params = dict(model.named_parameters())
        for name, ema_param in self.ema_model.named_parameters():
            if name in model_params:
                model_param = model_params[name]
                ema_param.data.mul_(decay).add_((1 - decay) * model_param.data)


def run():
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 2)
    averaged = Averaged(model)
    torch.nn.init.ones_(model.weight)
    averaged.update(model, 0.75)
    return list(averaged.ema_model.parameters())
