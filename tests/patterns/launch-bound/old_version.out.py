# at: return self.model(x)
# line: self.model = timm.create_model(name, pretrained=True)
# torch: 2.0.1
# fix: unsafe
import timm
import torch


class Service:
    def __init__(self, name):
        self.model = torch.compile(timm.create_model(name, pretrained=True).eval().to("cuda"), mode="reduce-overhead")

    def __call__(self, x):
        return self.model(x)
