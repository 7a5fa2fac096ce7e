# at: logits = net(crop)
# confirmed: no
def export(runner, path):
    path.write_bytes(runner.compile())


def infer(net, crop):
    logits = net(crop)
    return logits
