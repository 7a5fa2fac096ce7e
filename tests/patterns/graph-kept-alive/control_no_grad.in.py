# at: outputs.append(net(batch))
# confirmed: no
import torch


@torch.no_grad()
def collect(net, batches):
    outputs = []
    for batch in batches:
        outputs.append(net(batch))
    return outputs
