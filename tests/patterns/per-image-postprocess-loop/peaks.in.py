# at: results.append
# line: for i in range(
# fix: safe
import torch


def collect(logits):
    scores = logits.softmax(dim=1).amax(dim=1)
    labels = logits.argmax(dim=1)
    results = []
    for i in range(scores.shape[0]):
        # what the caller prints
        results.append({"score": scores[i].item(), "label": int(labels[i])})
    return results


def run():
    torch.manual_seed(0)
    return [list(one.values()) for one in collect(torch.randn(7, 5))]
