# at: opt.zero_grad(
import torch


def train(model, opt, batches):
    for x in batches:
        opt.zero_grad(set_to_none=False)  # keep the buffers
        model(x).pow(2).sum().backward()
        opt.step()


def run():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 2))
    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=0.01)
    train(model, opt, [torch.ones(2, 4), torch.zeros(3, 4), torch.ones(1, 4)])
    return list(model.parameters())
