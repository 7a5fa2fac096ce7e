# at: top = max(top, p.grad.max().item())
# confirmed: yes
def watch(model):
    top = 0.0
    for p in model.parameters():
        if p.grad is not None:
            top = max(top, p.grad.max().item())  # not of the absolute values
    return top
