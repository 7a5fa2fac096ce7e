# at: loss.backward()
# fix: unsafe
import torch


def step(loss, opt):
    loss.backward()
    opt.step()
