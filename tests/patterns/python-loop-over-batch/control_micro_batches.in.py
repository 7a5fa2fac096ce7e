# at: loss = model
# confirmed: no
def train(chunks, model, optimizer):
    for x in chunks:
        loss = model(x).mean()
        loss.backward()
    optimizer.step()
