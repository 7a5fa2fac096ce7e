#!/usr/bin/env python3
import argparse
import time

import torch
import torch.nn.functional as F
from torch.profiler import profile, record_function, schedule

from vit import create_model


class Mixup:
    def __init__(self, alpha=0.8, num_classes=10, smoothing=0.1):
        self.alpha, self.num_classes, self.smoothing = alpha, num_classes, smoothing

    def one_hot(self, y):
        off = self.smoothing / self.num_classes
        out = torch.full((y.size(0), self.num_classes), off)
        return out.scatter_(1, y.long().view(-1, 1), 1. - self.smoothing + off)

    def __call__(self, x, y):
        lam = float(torch.distributions.Beta(self.alpha, self.alpha).sample())
        x_flipped = x.flip(0).mul_(1. - lam)
        x.mul_(lam).add_(x_flipped)
        y1 = self.one_hot(y)
        y2 = self.one_hot(y.flip(0))
        return x, y1 * lam + y2 * (1. - lam)


class SoftTargetCrossEntropy(torch.nn.Module):
    def forward(self, x, target):
        loss = torch.sum(-target * F.log_softmax(x, dim=-1), dim=-1)
        return loss.mean()


class AverageMeter:
    def __init__(self):
        self.val = self.avg = self.sum = self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count


parser = argparse.ArgumentParser()
parser.add_argument('--model', default='vit_tiny')
parser.add_argument('--second', default='vit_tiny_qknorm')
parser.add_argument('-b', '--batch-size', type=int, default=16)
parser.add_argument('--steps', type=int, default=5)
parser.add_argument('--lr', type=float, default=5e-4)


def train_one_epoch(model, optimizer, loss_fn, mixup_fn, args, prof):
    losses = AverageMeter()
    model.train()
    end = time.time()
    for step in range(args.steps):
        input = torch.randn(args.batch_size, 3, 32, 32)
        target = torch.randint(0, 10, (args.batch_size,))
        with record_function("mixup"):
            input, target = mixup_fn(input, target)

        with record_function("forward"):
            output = model(input)
            loss = loss_fn(output, target)
        losses.update(loss.item(), input.size(0))

        optimizer.zero_grad()
        with record_function("backward"):
            loss.backward()
        optimizer.step()
        prof.step()
        batch_time = time.time() - end
        end = time.time()
    return losses.avg


def main(argv=None):
    args = parser.parse_args(argv)
    mixup_fn = Mixup()
    for name in (args.second, args.model):
        model = create_model(name, num_classes=10, img_size=32)
        optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.05)
        with profile(schedule=schedule(wait=1, warmup=1, active=3), with_stack=True) as prof:
            train_one_epoch(model, optimizer, SoftTargetCrossEntropy(), mixup_fn, args, prof)


if __name__ == '__main__':
    main()
