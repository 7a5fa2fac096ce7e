# at: x = x.permute(0, 2, 3, 1).contiguous()
def block(x):
    x = x.permute(0, 2, 3, 1).contiguous()
    x = x.permute(0, 2, 3, 1).contiguous()
    return x
