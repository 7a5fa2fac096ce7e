"""Distil the transformer into the small network."""

import argparse

import torch
import torch.nn.functional as F

from cnn import LeafCNN
from data import CLASSES, make_loader
from vit import LeafViT


def distillation_loss(student, teacher, labels, temperature=2.0):
    soft = F.kl_div(
        F.log_softmax(student / temperature, dim=1),
        F.softmax(teacher / temperature, dim=1),
        reduction="batchmean",
    )
    return 0.5 * F.cross_entropy(student, labels) + 0.5 * soft * temperature**2


def train(steps, batch_size=16, lr=1e-3, device="cpu", teacher_weights=None, on_step=None):
    loader = make_loader(512, batch_size)
    teacher = LeafViT(len(CLASSES)).to(device).eval()
    if teacher_weights:
        teacher.load_state_dict(torch.load(teacher_weights, map_location=device))
    model = LeafCNN(len(CLASSES)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=0.05, foreach=False)

    step, running = 0, 0.0
    while step < steps:
        for images, labels in loader:
            images, labels = images.to(device), labels.to(device)
            with torch.no_grad():
                target = teacher(images)
            loss = distillation_loss(model(images), target, labels)

            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

            running += loss.item()
            step += 1
            if step % 20 == 0:
                print(f"step {step} loss {running / 20:.3f}")
                running = 0.0
            if on_step:
                on_step()
            if step == steps:
                break
    return model


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--teacher", help="weights of the transformer")
    parser.add_argument("--out", default="student.pt")
    args = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    trained = train(args.steps, args.batch_size, device=device, teacher_weights=args.teacher)
    torch.save(trained.state_dict(), args.out)
