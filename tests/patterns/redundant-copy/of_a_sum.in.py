# at: return (a + b)
def merge(a, b):
    return (a + b).clone()  # a new tensor already


def run():
    import torch

    return merge(torch.ones(2), torch.ones(2))
