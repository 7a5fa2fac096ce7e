# at: total.append
def values(parts):
    losses = []
    for part in parts:
        losses.append(part.mean())
    total = []
    for i in range(len(losses)):
        total.append(losses[i].item())
    return total
