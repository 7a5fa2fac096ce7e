# at: return torch.from_numpy(
# confirmed: no
import numpy as np
import torch


def drawn(cam):
    shown = (cam.squeeze(1) * 255).byte().cpu().numpy()
    return torch.from_numpy(np.stack([shown, shown]))
