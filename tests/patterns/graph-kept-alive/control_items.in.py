# at: losses.append(loss.item())
# confirmed: no
def train(model, criterion, batches):
    losses = []
    for x, y in batches:
        loss = criterion(model(x), y)
        loss.backward()
        losses.append(loss.item())
    return losses
