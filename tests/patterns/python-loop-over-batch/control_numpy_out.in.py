# at: out[i] =
import numpy as np


def rescale(arr):
    out = np.zeros(arr.shape)
    for i in range(arr.shape[0]):
        out[i] = arr[i] / arr[i].max()
    return out
