# at: net(x), y
# fix: safe
import importlib.util

import torch


def validate(net, loader):
    from torchmetrics.classification import MulticlassJaccardIndex

    miou = MulticlassJaccardIndex(num_classes=5)
    for x, y in loader:
        miou(net(x), y)
    return miou.compute()


def run():
    if importlib.util.find_spec("torchmetrics") is None:
        return 0.0
    torch.manual_seed(0)
    batches = [(torch.randn(2, 5, 8, 8), torch.randint(0, 5, (2, 8, 8))) for _ in range(3)]
    return validate(torch.nn.Identity(), batches)
