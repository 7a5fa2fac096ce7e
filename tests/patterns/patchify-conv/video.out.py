# at: x = self.proj(x)
import torch
from torch import nn


class TubeletEmbed(nn.Module):
    """Cuts a clip into tubes."""

    def __init__(self, channels=3, dim=24, tube=(2, 4, 4)):
        super().__init__()
        self.proj = nn.Conv3d(channels, dim, kernel_size=tube, stride=tube)
        self.norm = nn.LayerNorm(dim)

    def forward(self, x):
        # one token for each tube
        kt, kh, kw = self.proj.kernel_size
        patches = x.unfold(2, kt, kt).unfold(3, kh, kh).unfold(4, kw, kw).permute(0, 2, 3, 4, 1, 5, 6, 7).flatten(4)
        x = nn.functional.linear(patches, self.proj.weight.flatten(1), self.proj.bias).permute(0, 4, 1, 2, 3)
        return self.norm(x.flatten(2).transpose(1, 2))


def run():
    torch.manual_seed(0)
    embed = TubeletEmbed()
    # sizes that do not divide: what is left over at the ends is dropped
    clip = torch.randn(2, 3, 5, 18, 16, requires_grad=True)
    tokens = embed(clip)
    tokens.square().mean().backward()
    return [tokens.detach(), clip.grad, *(p.grad for p in embed.parameters())]
