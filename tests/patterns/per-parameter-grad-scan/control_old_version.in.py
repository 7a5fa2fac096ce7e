# at: total += p.grad.norm().item() ** 2
# torch: 2.4.1
# confirmed: yes
def norm(model):
    total = 0.0
    for p in model.parameters():
        total += p.grad.norm().item() ** 2
    return total
