# slug: straggler-rank
# verdict: control
# silent: yes
# note: rank 1 is 200 ms slower in its backward pass, which on every rank takes 292 ms: one recording cannot tell
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


def main(rank, net, loader):
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl")
    net = DDP(net.cuda(rank), device_ids=[rank])
    criterion = nn.CrossEntropyLoss()
    for images, labels in loader:
        logits = net(images)
        loss = criterion(logits, labels)
        loss.backward()
