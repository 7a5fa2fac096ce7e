# at: x.float().cuda()
# fix: unsafe
def step(model, x):
    return model(x.cuda().float())
