# at: loss.backward(retain_graph=True)
# fix: unsafe
def train_step(model, criterion, opt, x, y):
    loss = criterion(model(x), y)
    opt.zero_grad()
    loss.backward(retain_graph=True)
    opt.step()
    return loss.item()
