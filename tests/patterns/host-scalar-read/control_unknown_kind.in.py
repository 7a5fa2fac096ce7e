# at: hits += found.item()
import torch


def train(results):
    hits = 0
    for found in results:
        hits += found.item()
    return hits
