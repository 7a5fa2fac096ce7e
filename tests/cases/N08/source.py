# slug: slow-operator-choice
# verdict: control
# silent: yes
# note: for two matrices einsum is one product, without a copy
import torch


def affinity(a):
    m = torch.einsum("ik,kj->ij", a, a.t())
    return m.softmax(-1)


def main(profiler):
    torch.manual_seed(0)
    a = torch.rand(500, 300)
    for _ in range(6):
        affinity(a)
        profiler.step()
