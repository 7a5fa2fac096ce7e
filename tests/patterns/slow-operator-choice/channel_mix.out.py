# at: return torch.einsum("bchw,oc->bohw", maps.relu(), weight)
# device: cpu
import torch
import torch.nn.functional as F


def mix(maps, weight):
    return F.conv2d(maps.relu(), weight[:, :, None, None])


def run():
    torch.manual_seed(0)
    maps, weight = torch.randn(2, 3, 5, 5, requires_grad=True), torch.randn(4, 3, requires_grad=True)
    out = mix(maps, weight)
    out.square().sum().backward()
    return out, maps.grad, weight.grad
