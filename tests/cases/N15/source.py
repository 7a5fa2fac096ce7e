# slug: bucket-copies
# verdict: control
# silent: yes
# note: ResNet: 0.122 against 0.123 s with gradient_as_bucket_view=True; it saves memory, not time
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def main(rank, net, loader, criterion):
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl")
    net = DDP(net.cuda(rank), device_ids=[rank])
    opt = torch.optim.SGD(net.parameters(), lr=0.1, fused=True)
    for images, labels in loader:
        loss = criterion(net(images), labels)
        loss.backward()
        opt.step()
        opt.zero_grad()
