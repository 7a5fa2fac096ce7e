# at: with torch.profiler.profile(record_shapes=True, with_stack=True) as prof:
# confirmed: no
import torch

with torch.profiler.profile(record_shapes=True, with_stack=True) as prof:
    torch.ones(2)
