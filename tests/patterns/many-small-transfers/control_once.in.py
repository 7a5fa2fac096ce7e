# at: x = x.to
# confirmed: no
def step(model, x, device):
    x = x.to(device)
    return model(x)
