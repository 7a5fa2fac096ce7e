# at: y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
# line: x = pad_sequence([tokens for tokens, _ in samples], batch_first=True)
import torch
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence


def collate(samples):
    x = pad_sequence([tokens for tokens, _ in samples], batch_first=True)
    return x, torch.tensor([len(tokens) for tokens, _ in samples])


def attend(q, k, v, lengths):
    mask = (torch.arange(q.shape[2]) < lengths[:, None])[:, None, None]
    y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    return y
