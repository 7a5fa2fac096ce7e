# at: model = model.to("cuda")
# confirmed: no
def setup(model):
    model = model.to("cuda")
    return model
