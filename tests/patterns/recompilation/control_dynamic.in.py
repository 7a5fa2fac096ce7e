# at: logits = net(crop)
# confirmed: no
import torch

net = torch.compile(build(), dynamic=True)
logits = net(crop)
