# at: loss.backward()
# line: dist.init_process_group(backend=args.dist_backend, init_method=args.dist_url)
# torch: 2.2.0
# fix: unsafe
import argparse

import torch.distributed as dist

parser = argparse.ArgumentParser(description="ImageNet training")
parser.add_argument("--dist-url", default="env://", type=str, help="where the ranks meet")
parser.add_argument("--dist-backend", default="cpu:gloo,cuda:nccl", type=str, help="distributed backend")


def main(net, loader, criterion):
    args = parser.parse_args()
    dist.init_process_group(backend=args.dist_backend, init_method=args.dist_url)
    for images, target in loader:
        loss = criterion(net(images.cuda()), target.cuda())
        loss.backward()
