# at: frame = image
# confirmed: no
import numpy as np


def overlay(image, mask):
    frame = image.cpu().numpy().transpose(1, 2, 0)
    frame = np.where(mask[..., None], frame * 0.5, frame)
    return np.clip(frame, 0, 255)
