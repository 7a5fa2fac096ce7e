# at: out = model(batch)
# line: return torch.nn.parallel.DistributedDataParallel(model, **options)
# fix: unsafe
import torch


def wrapped(model, rank):
    options = dict(device_ids=[rank], find_unused_parameters=True)
    return torch.nn.parallel.DistributedDataParallel(model, **options)


def fit(model, rank, loader):
    model = wrapped(model, rank)
    for batch in loader:
        out = model(batch)
        out.sum().backward()
