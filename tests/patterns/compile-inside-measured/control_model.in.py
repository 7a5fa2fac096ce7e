# at: logits = model(batch)
import torch

model = torch.compile(build())
logits = model(batch)
