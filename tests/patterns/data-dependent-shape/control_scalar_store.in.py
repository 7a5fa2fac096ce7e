# at: x[x < 0] = 0
# confirmed: no
def relu(x):
    x[x < 0] = 0
    return x
