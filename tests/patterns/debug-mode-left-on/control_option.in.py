# at: loss.backward()
# confirmed: no
import argparse

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--debug", action="store_true")
args = parser.parse_args()
torch.autograd.set_detect_anomaly(args.debug)


def train(loss):
    loss.backward()
