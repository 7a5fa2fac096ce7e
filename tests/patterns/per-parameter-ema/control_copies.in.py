# at: v.copy_(source[k])
# confirmed: no
def restore(model, source):
    for k, v in model.state_dict().items():
        v.copy_(source[k])
