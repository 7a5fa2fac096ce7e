# slug: find-unused-parameters
# verdict: fault
# at: net = DDP(net, device_ids=[gpu], find_unused_parameters=True)
# fix: unsafe
# note: self-supervised pre-training; the log warns that no unused parameter was found
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Encoder(nn.Module):
    def __init__(self, width=256, layers=30):
        super().__init__()
        self.layers = nn.Sequential(*(nn.Linear(width, width) for _ in range(layers)))

    def forward(self, views):
        return self.layers(views)


def main(gpu, net, loader, criterion):
    torch.cuda.set_device(gpu)
    dist.init_process_group("nccl")
    net = DDP(net, device_ids=[gpu], find_unused_parameters=True)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for views in loader:
        embedding = net(views)
        loss = criterion(embedding)
        loss.backward()
        opt.step()
        opt.zero_grad()
