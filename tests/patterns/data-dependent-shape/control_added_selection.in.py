# at: x[mask] += update
def put(x, mask, update):
    x[mask] += update
    return x
