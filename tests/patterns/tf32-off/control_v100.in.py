# at: y = a @ b
# device: cuda 7.0
# confirmed: no
def f(a, b):
    y = a @ b
    return y
