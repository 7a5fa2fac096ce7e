# at: metrics.collect()
# confirmed: no
def step(net, x, metrics):
    out = net(x)
    metrics.collect()
    return out
