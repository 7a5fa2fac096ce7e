"""A script whose sizes come from the command line's defaults."""

import argparse

import torch
import torch.nn as nn


def get_args():
    parser = argparse.ArgumentParser()
    group = parser.add_argument_group("model")
    group.add_argument("--hidden-dim", default=48, type=int)
    group.add_argument("--layers", "-l", type=int, default=2)
    parser.add_argument("--no-bias", action="store_true")
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--norm", choices=["bn", "ln"], default="ln")
    return parser.parse_args([])


class MLP(nn.Module):
    def __init__(self, args, inputs=20, outputs=3):
        nn.Module.__init__(self)
        sizes = [inputs] + [args.hidden_dim] * args.layers
        self.layers = nn.ModuleList(nn.Linear(a, b, bias=not args.no_bias) for a, b in zip(sizes, sizes[1:]))
        self.norms = nn.ModuleList(nn.LayerNorm(s) if args.norm == "ln" else nn.BatchNorm1d(s) for s in sizes[1:])
        self.out = nn.Linear(sizes[-1], outputs)

    def forward(self, x):
        for layer, norm in zip(self.layers, self.norms):
            x = torch.relu(norm(layer(x)))
        return self.out(x)


args = get_args()
model = MLP(args)
example = torch.randn(4, 20)
