# at: hidden = self.proj(hidden).view(-1, self.dim)
# fix: unsafe
from torch import nn
from torch.nn import functional as F


class VisionEmbed(nn.Module):
    def __init__(self, patch_size=14, temporal=2, dim=1280):
        super().__init__()
        kernel_size = [temporal, patch_size, patch_size]
        self.proj = nn.Conv3d(3, dim, kernel_size=kernel_size, stride=kernel_size, bias=False)
        self.patch_size, self.temporal, self.dim = patch_size, temporal, dim

    def forward(self, hidden):
        hidden = hidden.view(-1, 3, self.temporal, self.patch_size, self.patch_size)
        hidden = self.proj(hidden).view(-1, self.dim)
        return F.gelu(hidden)
