# at: opt.zero_grad(set_to_none=False)
# confirmed: yes
import torch


def capture(model, opt, x):
    graph = torch.cuda.CUDAGraph()
    opt.zero_grad(set_to_none=False)
    with torch.cuda.graph(graph):
        model(x).sum().backward()
    return graph
