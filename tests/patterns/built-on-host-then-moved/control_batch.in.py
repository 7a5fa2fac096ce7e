# at: x = x.to(device)
# confirmed: no
def sample(x, device):
    x = x.to(device)
    return x
