# at: loss.backward()
# device: cpu
# confirmed: no
import torch.distributed as dist


def main(net, loader):
    dist.init_process_group("gloo")
    for images in loader:
        loss = net(images).mean()
        loss.backward()
