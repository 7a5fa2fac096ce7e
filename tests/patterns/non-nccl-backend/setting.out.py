# at: ddp(x).sum().backward()
# line: dist.init_process_group(backend=BACKEND)
# torch: 2.4.0
# fix: unsafe
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

BACKEND = 'cpu:gloo,cuda:nccl'
LOCAL_RANK = 0


def train(net, batches):
    dist.init_process_group(backend=BACKEND)
    if torch.cuda.is_available():
        torch.cuda.set_device(LOCAL_RANK)
    ddp = DistributedDataParallel(net)
    for x in batches:
        ddp(x).sum().backward()
    dist.destroy_process_group()
    return [parameter.grad.clone() for parameter in net.parameters()]
