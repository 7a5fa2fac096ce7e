# at: probs = torch.softmax(logits, dim=-1)
# confirmed: no
import torch


def mixture(x, gate, experts):
    logits = gate(x)
    probs = torch.softmax(logits, dim=-1)
    return probs @ experts
