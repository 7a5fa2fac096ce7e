# at: cuda.synchronize()
# fix: unsafe
from torch import cuda


def predict(model, frames):
    results = []
    for frame in frames:
        results.append(model(frame))
        cuda.synchronize()  # was needed for the old driver
    return results
