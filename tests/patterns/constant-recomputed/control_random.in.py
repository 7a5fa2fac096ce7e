# at: noise = torch.linspace(0, 1, x.shape[0]) * torch.randn(x.shape)
import torch
import torch.nn as nn


class Diffusion(nn.Module):
    def forward(self, x):
        noise = torch.linspace(0, 1, x.shape[0]) * torch.randn(x.shape)
        return x + noise
