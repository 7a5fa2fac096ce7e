# at: return F.scaled_dot_product_attention(q, k, v, attn_mask=visible)
# confirmed: no
import torch
import torch.nn.functional as F


def up_to_the_frame(q, k, v, frames, tokens):
    frame = torch.arange(frames, device=q.device).repeat_interleave(tokens)
    visible = frame[:, None] >= frame[None, :]
    return F.scaled_dot_product_attention(q, k, v, attn_mask=visible)
