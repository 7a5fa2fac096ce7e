"""Windows, stages by index, a relative position table and its index as a buffer."""

import torch
from torch import nn


class WindowAttention(nn.Module):
    def __init__(self, dim, window_size, num_heads):
        super().__init__()
        self.dim, self.window_size, self.num_heads = dim, window_size, num_heads
        self.relative_position_bias_table = nn.Parameter(
            torch.zeros((2 * window_size[0] - 1) * (2 * window_size[1] - 1), num_heads)
        )
        coords = torch.stack(
            torch.meshgrid([torch.arange(window_size[0]), torch.arange(window_size[1])], indexing="ij")
        )
        flat = torch.flatten(coords, 1)
        relative = (flat[:, :, None] - flat[:, None, :]).permute(1, 2, 0).contiguous()
        relative[:, :, 0] += window_size[0] - 1
        self.register_buffer("relative_position_index", relative.sum(-1))
        self.qkv = nn.Linear(dim, dim * 3)
        self.proj = nn.Linear(dim, dim)
        self.softmax = nn.Softmax(dim=-1)

    def forward(self, x):
        B, N, C = x.shape
        qkv = self.qkv(x).reshape(B, N, 3, self.num_heads, C // self.num_heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv[0], qkv[1], qkv[2]
        attn = self.softmax(q @ k.transpose(-2, -1))
        return self.proj((attn @ v).transpose(1, 2).reshape(B, N, C))


class SwinBlock(nn.Module):
    def __init__(self, dim, resolution, heads, window=4, shift=0):
        super().__init__()
        self.shift = shift
        if min(resolution) <= window:
            self.shift, window = 0, min(resolution)
        self.norm1 = nn.LayerNorm(dim)
        self.attn = WindowAttention(dim, (window, window), heads)
        self.norm2 = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))
        if self.shift > 0:
            h, w = resolution
            mask = torch.zeros((1, h, w, 1))
        else:
            mask = None
        self.register_buffer("mask", mask)

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class PatchMerging(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.reduction = nn.Linear(4 * dim, 2 * dim, bias=False)
        self.norm = nn.LayerNorm(4 * dim)

    def forward(self, x):
        B, L, C = x.shape
        return self.reduction(self.norm(x.reshape(B, L // 4, 4 * C)))


class Stage(nn.Module):
    def __init__(self, dim, resolution, depth, heads, downsample=None):
        super().__init__()
        self.blocks = nn.ModuleList(
            [SwinBlock(dim, resolution, heads, shift=0 if (i % 2 == 0) else 2) for i in range(depth)]
        )
        self.downsample = downsample(dim) if downsample is not None else None

    def forward(self, x):
        for blk in self.blocks:
            x = blk(x)
        return self.downsample(x) if self.downsample is not None else x


class Swin(nn.Module):
    def __init__(self, dim=24, depths=(2, 2, 2), heads=(2, 4, 8), resolution=16):
        super().__init__()
        self.num_layers = len(depths)
        self.num_features = int(dim * 2 ** (self.num_layers - 1))
        self.patch = nn.Conv2d(3, dim, 4, 4)
        self.layers = nn.ModuleList()
        for i_layer in range(self.num_layers):
            self.layers.append(
                Stage(
                    int(dim * 2**i_layer),
                    (resolution // (2**i_layer), resolution // (2**i_layer)),
                    depths[i_layer],
                    heads[i_layer],
                    downsample=PatchMerging if (i_layer < self.num_layers - 1) else None,
                )
            )
        self.norm = nn.LayerNorm(self.num_features)
        self.avgpool = nn.AdaptiveAvgPool1d(1)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        for layer in self.layers:
            x = layer(x)
        return torch.flatten(self.avgpool(self.norm(x).transpose(1, 2)), 1)


def main():
    net = Swin(depths=(2, 4, 2))
    return net


model = main()
example = torch.randn(1, 3, 64, 64)
