# at: outs.append(out)
# confirmed: no
def train(model, batches, criterion):
    for views, y in batches:
        outs = []
        out = model(views[0])
        outs.append(out)
        criterion(outs, y).backward()
