# at: running_loss += loss.item() * inputs.size(0)
import torch


def train(model, loader, criterion):
    running_loss, seen = 0.0, 0
    for inputs, labels in loader:
        loss = criterion(model(inputs), labels)
        loss.backward()

        running_loss += loss.item() * inputs.size(0)  # Σ
        seen += inputs.size(0)
        if seen % 2 == 0:
            print(f"{seen}: {running_loss / seen:.3f}")
    epoch_loss = running_loss / seen
    return {"loss": epoch_loss, "is": type(running_loss).__name__ == "float"}


def run():
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 2)
    data = [(torch.randn(2, 3), torch.randn(2, 2)) for _ in range(4)]
    return train(model, data, torch.nn.MSELoss())
