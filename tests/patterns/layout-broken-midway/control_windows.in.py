# at: return x.permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, size, size, C)
def windows(x, size):
    B, H, W, C = x.shape
    x = x.view(B, H // size, size, W // size, size, C)
    return x.permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, size, size, C)
