# at: correct = correct + (pred == y).sum().item()
import torch


@torch.no_grad()
def evaluate(model, loader, epochs=2):
    history = []
    for epoch in range(epochs):
        correct = total = 0
        for x, y in loader:
            pred = model(x).argmax(1)
            correct = correct + (pred == y).sum().detach()
            total += len(y)
        correct = torch.as_tensor(correct).item()
        history.append(correct / total)
    return history, correct


def run():
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 2)
    data = [(torch.randn(4, 3), torch.tensor([0, 1, 1, 0])) for _ in range(3)]
    return evaluate(model, data)
