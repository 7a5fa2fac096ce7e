# at: x = torch.from_numpy(frame).to("cuda")
import torch


def infer(frame):
    x = torch.from_numpy(frame).to("cuda")
    return x
