# at: x[:, 1:, n]
# confirmed: no
def crop(x, n):
    return x[:, 1:, n]
