# at: loss.backward()
# confirmed: no
import torch
import torch.distributed as dist


def main(net, loader):
    backend = "nccl" if torch.cuda.is_available() else "gloo"
    dist.init_process_group(backend)
    for images in loader:
        loss = net(images).mean()
        loss.backward()
