# at: logits = model(batch)
# confirmed: no
import torch

model = torch.compile(build(), mode="max-autotune")
logits = model(batch)
