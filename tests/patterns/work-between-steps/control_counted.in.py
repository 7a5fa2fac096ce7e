# at: preview = save_image(
# confirmed: no
from torchvision.utils import save_image


def train(batches, net):
    for step, batch in enumerate(batches):
        out = net(batch)
        if step % 25 == 0:
            preview = save_image(out, "out.png")
