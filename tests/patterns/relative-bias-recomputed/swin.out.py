# at: relative_position_bias = self.relative_position_bias_table[
# fix: unsafe
import torch
import torch.nn as nn


class WindowAttention(nn.Module):
    def __init__(self, dim=8, window=3, heads=2):
        super().__init__()
        self.window, self.heads = window, heads
        self.relative_position_bias_table = nn.Parameter(torch.randn((2 * window - 1) ** 2, heads))
        at = torch.stack(torch.meshgrid(torch.arange(window), torch.arange(window), indexing="ij")).flatten(1)
        between = at[:, :, None] - at[:, None, :] + window - 1
        self.register_buffer("relative_position_index", between[0] * (2 * window - 1) + between[1])
        self.qkv = nn.Linear(dim, dim * 3)
        self.kept_bias = None

    def forward(self, x):
        b, n, c = x.shape
        q, k, v = self.qkv(x).reshape(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        attn = q @ k.transpose(-2, -1)

        relative_position_bias = self.kept_bias
        if relative_position_bias is None or torch.is_grad_enabled():
            relative_position_bias = self.relative_position_bias_table[self.relative_position_index.view(-1)].view(
                self.window * self.window, self.window * self.window, -1
            )  # tokens, tokens, heads
            relative_position_bias = relative_position_bias.permute(2, 0, 1).contiguous()
            self.kept_bias = None if torch.is_grad_enabled() else relative_position_bias
        attn = attn + relative_position_bias.unsqueeze(0)

        return (attn.softmax(dim=-1) @ v).transpose(1, 2).reshape(b, n, c)


def run():
    torch.manual_seed(0)
    module, x = WindowAttention(), torch.randn(2, 9, 8)
    results = [module(x)]
    with torch.no_grad():
        results += [module(x), module(x)]
        module.relative_position_bias_table.add_(1.0)
    results[0].sum().backward()
    results.append(module(x).detach())
    with torch.inference_mode():
        results.append(module(x).clone())
    return results
