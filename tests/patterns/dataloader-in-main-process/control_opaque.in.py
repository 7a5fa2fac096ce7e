# at: for x in loader:
import yaml
from torch.utils.data import DataLoader


def train(dataset, model, path):
    cfg = yaml.safe_load(open(path))
    loader = DataLoader(dataset, **cfg["loader"])
    for x in loader:
        model(x)
