# at: logits = model(batch)
import torch

model = torch.compile(build(), mode="max-autotune-no-cudagraphs")
logits = model(batch)
