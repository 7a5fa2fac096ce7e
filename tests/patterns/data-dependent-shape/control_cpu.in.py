# at: y = x[x > 0]
# device: cpu
# confirmed: no
def pick(x):
    y = x[x > 0]
    return y
