# at: logits = net(crop)
import torch

net = torch.compile(build(), **options)
logits = net(crop)
