# at: average = 0.9 * average + 0.1 * loss
# confirmed: no
import torch


def smooth(losses):
    average = 0.0
    for loss in losses:
        average = 0.9 * average + 0.1 * loss
    return average
