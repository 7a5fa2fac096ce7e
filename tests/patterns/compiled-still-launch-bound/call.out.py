# at: return self.net(images)
# line: self.net = torch.compile(net)
# fix: unsafe
import torch


class Server:
    def __init__(self, net):
        self.net = torch.compile(net, mode="reduce-overhead")

    def infer(self, images):
        return self.net(images)
