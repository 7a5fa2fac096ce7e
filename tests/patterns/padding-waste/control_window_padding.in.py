# at: x = F.pad(x, (0, 0, 0, pad_w, 0, pad_h))
# confirmed: no
import torch.nn.functional as F


def forward(x, window):
    """Pads the map to whole windows: a row or two, not sequences."""
    h, w = x.shape[1:3]
    pad_h, pad_w = -h % window, -w % window
    x = F.pad(x, (0, 0, 0, pad_w, 0, pad_h))
    return x
