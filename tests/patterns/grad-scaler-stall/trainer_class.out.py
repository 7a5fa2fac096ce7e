# at: self.grad_scaler.step(self.optimizer)
# line: self.optimizer = optim.Adam(
import torch
from torch import nn, optim


class Trainer:
    def __init__(self, model, lr):
        self.model = model
        self.optimizer = optim.Adam(
            [{"params": model.parameters(), "lr": lr}],
            betas=(0.9, 0.95),
            fused=True,
        )
        self.grad_scaler = torch.cuda.amp.GradScaler()

    def training_step(self, x):
        loss = self.model(x).mean()
        self.grad_scaler.scale(loss).backward()
        self.grad_scaler.unscale_(self.optimizer)
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.grad_scaler.step(self.optimizer)
        self.grad_scaler.update()
        return loss


def run():
    torch.manual_seed(0)
    trainer = Trainer(nn.Linear(3, 2), 1e-3)
    trainer.training_step(torch.ones(2, 3))
    return [p.detach() for p in trainer.model.parameters()]
