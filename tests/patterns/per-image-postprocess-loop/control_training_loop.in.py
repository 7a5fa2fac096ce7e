# at: total = 
# confirmed: no
def train(batches, model, optimizer):
    seen = []
    for x in batches:
        loss = model(x).mean()
        loss.backward()
        optimizer.step()
        total = loss.item()
        seen.append(total)
    return seen
