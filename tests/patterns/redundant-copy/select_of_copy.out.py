# at: first = (
import torch


def first_channel(images):
    first = (
        images.permute(0, 2, 3, 1)
        .select(-1, 0).contiguous()
    )
    return first.amax(dim=(1, 2))


def run():
    torch.manual_seed(0)
    return first_channel(torch.randn(2, 3, 4, 4))
