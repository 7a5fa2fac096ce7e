# at: logits = net(crop)
# line: net = torch.compile(
# fix: unsafe
import torch

net = torch.compile(build(), fullgraph=True, dynamic=True)
logits = net(crop)
