import torch
import torch.nn as nn

from .factory import register_model
from .layers import Attention, DropPath, LayerNorm6, LayerScale, Mlp, PatchEmbed


class Block(nn.Module):
    def __init__(self, dim, num_heads, mlp_ratio=4., qkv_bias=True, qk_norm=False, drop_path=0., init_values=None,
                 norm_layer=LayerNorm6, fused=True):
        super().__init__()
        self.norm1 = norm_layer(dim)
        self.attn = Attention(dim, num_heads=num_heads, qkv_bias=qkv_bias, qk_norm=qk_norm, fused=fused)
        self.ls1 = LayerScale(dim, init_values=init_values) if init_values else nn.Identity()
        self.drop_path1 = DropPath(drop_path) if drop_path > 0. else nn.Identity()

        self.norm2 = norm_layer(dim)
        self.mlp = Mlp(in_features=dim, hidden_features=int(dim * mlp_ratio))
        self.ls2 = LayerScale(dim, init_values=init_values) if init_values else nn.Identity()
        self.drop_path2 = DropPath(drop_path) if drop_path > 0. else nn.Identity()

    def forward(self, x):
        x = x + self.drop_path1(self.ls1(self.attn(self.norm1(x))))
        x = x + self.drop_path2(self.ls2(self.mlp(self.norm2(x))))
        return x


class VisionTransformer(nn.Module):
    def __init__(self, img_size=32, patch_size=4, num_classes=10, global_pool='token', embed_dim=96, depth=4,
                 num_heads=4, drop_path_rate=0.1, init_values=1e-4, qk_norm=False, fused=True):
        super().__init__()
        assert global_pool in ('', 'avg', 'token')
        self.global_pool = global_pool
        self.patch_embed = PatchEmbed(img_size, patch_size, embed_dim=embed_dim)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, embed_dim))
        self.pos_embed = nn.Parameter(torch.randn(1, self.patch_embed.num_patches + 1, embed_dim) * .02)
        self.pos_drop = nn.Dropout(p=0.)
        dpr = [x.item() for x in torch.linspace(0, drop_path_rate, depth)]
        self.blocks = nn.Sequential(*[
            Block(dim=embed_dim, num_heads=num_heads, drop_path=dpr[i], init_values=init_values, qk_norm=qk_norm,
                  fused=fused)
            for i in range(depth)])
        self.norm = LayerNorm6(embed_dim)
        self.head = nn.Linear(embed_dim, num_classes) if num_classes > 0 else nn.Identity()
        self.init_weights()

    def init_weights(self):
        nn.init.trunc_normal_(self.pos_embed, std=.02)
        for m in self.modules():
            if isinstance(m, nn.Linear):
                nn.init.trunc_normal_(m.weight, std=.02)
                if m.bias is not None:
                    nn.init.zeros_(m.bias)

    def _pos_embed(self, x):
        x = torch.cat((self.cls_token.expand(x.shape[0], -1, -1), x), dim=1)
        x = x + self.pos_embed
        return self.pos_drop(x)

    def forward_features(self, x):
        x = self.patch_embed(x)
        x = self._pos_embed(x)
        x = self.blocks(x)
        x = self.norm(x)
        return x

    def forward_head(self, x, pre_logits: bool = False):
        if self.global_pool:
            x = x[:, 1:].mean(dim=1) if self.global_pool == 'avg' else x[:, 0]
        return x if pre_logits else self.head(x)

    def forward(self, x):
        x = self.forward_features(x)
        x = self.forward_head(x)
        return x


def _create(variant, pretrained=False, **kwargs):
    model = VisionTransformer(**kwargs)
    if pretrained:
        raise RuntimeError(f"no weights for {variant}")
    return model


@register_model
def vit_tiny(pretrained=False, **kwargs):
    return _create('vit_tiny', pretrained, **dict(dict(embed_dim=96, depth=3, num_heads=3), **kwargs))


@register_model
def vit_tiny_qknorm(pretrained=False, **kwargs):
    return _create('vit_tiny_qknorm', pretrained, **dict(dict(embed_dim=96, depth=2, num_heads=4, qk_norm=True, fused=False, global_pool='avg'), **kwargs))
