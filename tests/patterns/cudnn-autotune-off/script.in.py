# at: loss = net(x).sum()
# line: from torch import nn
# device: cuda 7.0
import argparse

import torch
from torch import nn


def train(batches):
    net = nn.Conv2d(1, 2, 3)
    for x in batches:
        loss = net(x).sum()
        loss.backward()
    return net.weight.grad


def run():
    torch.manual_seed(0)
    argparse.ArgumentParser()
    return train([torch.ones(1, 1, 5, 5)])
