# at: scaler.step(self.optimizer)
# line: self.optimizer = AdamW(
import torch
from torch.optim import AdamW


class Trainer:
    def __init__(self, model):
        self.model = model
        self.optimizer = AdamW(
            [p for p in model.parameters() if p.requires_grad],
            lr=1e-2,
            foreach=True,  # saves memory
        )

    def update(self, scaler):
        scaler.step(self.optimizer)


class Scaler:
    def step(self, optimizer):
        optimizer.step()


def run():
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 3)
    model(torch.ones(2, 4)).pow(2).sum().backward()
    Trainer(model).update(Scaler())
    return list(model.parameters())
