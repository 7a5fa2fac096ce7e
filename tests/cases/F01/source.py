# slug: data-dependent-shape
# verdict: fault
# at: emb[kind == -1] += self.pad_vec.weight
# at: emb[kind == 0] += self.bg_vec.weight
# at: emb[kind == 1] += self.fg_vec.weight
# fix: safe
# note: promptable segmentation, inference: the prompt encoder writes through boolean masks
import torch
from torch import nn


class PromptEncoder(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.freq = nn.Parameter(torch.randn(2, dim // 2))
        self.pad_vec = nn.Embedding(1, dim)
        self.bg_vec = nn.Embedding(1, dim)
        self.fg_vec = nn.Embedding(1, dim)

    def pos_enc(self, xy):
        phase = xy @ self.freq
        return torch.cat([phase.sin(), phase.cos()], dim=-1)

    def embed_prompts(self, xy, kind):          # kind: -1 padding, 0 background click, 1 foreground click
        emb = self.pos_enc(xy)
        emb[kind == -1] = 0.0
        emb[kind == -1] += self.pad_vec.weight
        emb[kind == 0] += self.bg_vec.weight
        emb[kind == 1] += self.fg_vec.weight
        return emb


@torch.no_grad()
def segment(encoder, clicks):
    return [encoder.embed_prompts(xy, kind) for xy, kind in clicks]


def result():
    torch.manual_seed(0)
    encoder = PromptEncoder()
    clicks = [(torch.rand(3, 5, 2), torch.randint(-1, 2, (3, 5))) for _ in range(4)]
    return segment(encoder, clicks)
