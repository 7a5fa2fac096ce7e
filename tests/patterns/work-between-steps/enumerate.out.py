# at: writer.add_images(
# fix: unsafe
def train(loader, net, opt, writer):
    for step, (x, y) in enumerate(loader):
        out = net(x)
        opt.zero_grad()
        (out - y).pow(2).mean().backward()
        opt.step()
        if step % 50 == 0:
            writer.add_images(
                "predictions",
                out.detach().cpu(),
                step,
            )
