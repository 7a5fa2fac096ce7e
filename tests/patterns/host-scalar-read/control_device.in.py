# at: total = total + loss.detach()
# confirmed: no
def step(loss, total):
    total = total + loss.detach()
    return total
