# at: grid = make_grid(out)
from torchvision.utils import make_grid


def train(batches, net, queue):
    for step, batch in enumerate(batches):
        out = net(batch)
        grid = make_grid(out)
        queue.append(grid)
