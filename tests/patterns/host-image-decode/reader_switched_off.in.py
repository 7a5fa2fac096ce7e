# at: for clips in loader:
# line: train_set = dict(
# fix: unsafe
from torch.utils.data import DataLoader

from films import build

train_set = dict(type="Clips", length=32, use_decord=False)


def train(model):
    loader = DataLoader(build(train_set), batch_size=8, num_workers=4)
    for clips in loader:
        model(clips)
