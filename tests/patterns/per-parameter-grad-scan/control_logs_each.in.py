# at: writer.add_scalar(
# confirmed: yes
def log(writer, model, step):
    for name, p in model.named_parameters():
        if p.grad is not None:
            writer.add_scalar("grad/" + name, p.grad.norm().item(), step)
