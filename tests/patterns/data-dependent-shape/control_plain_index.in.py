# at: y = x[0] + x[:, 1]
# confirmed: no
def pick(x):
    y = x[0] + x[:, 1]
    return y
