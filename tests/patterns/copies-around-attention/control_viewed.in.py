# at: q = q.transpose(1, 2).contiguous()
# confirmed: no
import torch.nn.functional as F


def attend(q, k, v):
    """The dense queries are looked at in another shape: the copy is needed."""
    q = q.transpose(1, 2).contiguous()
    norms = q.view(len(q), -1).norm(dim=-1)
    return F.scaled_dot_product_attention(q, k, v), norms
