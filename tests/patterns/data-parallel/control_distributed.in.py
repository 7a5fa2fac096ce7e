# at: logits = net(images)
# confirmed: no
from torch.nn.parallel import DistributedDataParallel


def train(net, loader, criterion, rank):
    net = DistributedDataParallel(net.cuda(rank), device_ids=[rank])
    for images, labels in loader:
        logits = net(images)
        criterion(logits, labels.cuda(rank)).backward()
