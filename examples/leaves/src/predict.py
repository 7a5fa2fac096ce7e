"""Name the leaves of the validation set with a trained student."""

import argparse

import torch

from cnn import LeafCNN
from data import CLASSES, make_loader


@torch.inference_mode()
def predict(model, loader, device="cpu", on_step=None):
    model.eval()
    names, correct = [], 0
    for images, labels in loader:
        logits = model(images.to(device))
        confidence, best = logits.softmax(dim=1).max(dim=1)
        names += [(CLASSES[kind], value) for kind, value in zip(best.tolist(), confidence.tolist())]
        correct += (best == labels.to(device)).sum().item()
        if on_step:
            on_step()
    return names, correct / len(names)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weights", help="what train.py wrote")
    parser.add_argument("--count", type=int, default=256)
    args = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = LeafCNN(len(CLASSES)).to(device)
    if args.weights:
        model.load_state_dict(torch.load(args.weights, map_location=device))
    names, accuracy = predict(model, make_loader(args.count, 32, train=False), device)
    print(f"{len(names)} leaves, {100 * accuracy:.1f} % right")
