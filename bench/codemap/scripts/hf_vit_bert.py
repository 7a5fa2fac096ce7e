"""Fine-tuning with a library's models: a ViT with a head of our own, then a frozen text encoder."""
import torch
import torch.nn as nn
from transformers import BertConfig, BertModel, ViTConfig, ViTModel

vit_config = ViTConfig(hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96, image_size=32, patch_size=8)
bert_config = BertConfig(vocab_size=200, hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96)


class Clip(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.vision = ViTModel(vit_config)
        self.text = BertModel(bert_config)
        self.text.requires_grad_(False)
        self.vision_proj = nn.Linear(48, dim, bias=False)
        self.text_proj = nn.Linear(48, dim, bias=False)
        self.logit_scale = nn.Parameter(torch.tensor(2.6592))

    def encode_image(self, pixels):
        hidden = self.vision(pixel_values=pixels).last_hidden_state
        return nn.functional.normalize(self.vision_proj(hidden[:, 0]), dim=-1)

    @torch.no_grad()
    def encode_text_hidden(self, ids, mask):
        out = self.text(input_ids=ids, attention_mask=mask)
        weights = mask.unsqueeze(-1).float()
        return (out.last_hidden_state * weights).sum(1) / weights.sum(1)

    def forward(self, pixels, ids, mask):
        image = self.encode_image(pixels)
        text = self.text_proj(self.encode_text_hidden(ids, mask))
        text = text / text.norm(dim=-1, keepdim=True)
        return self.logit_scale.exp() * image @ text.t()


def clip_loss(logits):
    target = torch.arange(len(logits))
    return (nn.functional.cross_entropy(logits, target) + nn.functional.cross_entropy(logits.t(), target)) / 2


def main():
    model = Clip()
    optimizer = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad), lr=1e-4)
    with torch.profiler.profile(schedule=torch.profiler.schedule(wait=1, warmup=1, active=2)) as prof:
        for _ in range(4):
            pixels = torch.rand(6, 3, 32, 32)
            ids = torch.randint(0, 200, (6, 12))
            mask = (torch.arange(12) < torch.randint(4, 13, (6, 1))).long()
            loss = clip_loss(model(pixels, ids, mask))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            prof.step()


if __name__ == "__main__":
    main()
