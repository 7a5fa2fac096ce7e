# at: losses.append(loss)
# confirmed: no
def train_step(model, criterion, scales):
    """All scales are differentiated together."""
    losses = []
    for x, y in scales:
        loss = criterion(model(x), y)
        losses.append(loss)
    sum(losses).backward()
