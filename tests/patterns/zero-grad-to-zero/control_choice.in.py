# at: opt.zero_grad(set_to_none=config.drop)
# confirmed: no
def step(opt, config):
    opt.zero_grad(set_to_none=config.drop)
    opt.step()
