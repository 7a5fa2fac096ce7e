# at: x = x.permute(0, 2, 3, 1)
# confirmed: no
def block(x):
    x = x.permute(0, 2, 3, 1)
    return x.permute(0, 3, 1, 2)
