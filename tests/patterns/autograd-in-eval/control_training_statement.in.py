# at: if model(x).sum() > 0:
# confirmed: yes
def train(model, x, opt):
    if model(x).sum() > 0:
        opt.step()
