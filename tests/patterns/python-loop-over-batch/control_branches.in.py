# at: total += 
def loss(pred, target, weight):
    total = 0
    for i in range(len(pred)):
        if target[i].sum() > 0:
            total += ((pred[i] - target[i]) ** 2).mean() * weight
    return total
