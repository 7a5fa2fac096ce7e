# at: batch = [
# fix: unsafe
import torch


def predict(model, images, to_tensor, dev):
    batch = [to_tensor(im).to(dev) for im in images]  # camera frames
    return model(batch)
