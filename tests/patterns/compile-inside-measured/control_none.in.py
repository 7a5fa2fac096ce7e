# at: logits = model(batch)
# confirmed: no
import torch

model = build()
logits = model(batch)
