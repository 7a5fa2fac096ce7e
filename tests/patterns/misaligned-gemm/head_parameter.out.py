# at: logits = self.classifier(
# line: self.classifier = nn.Sequential
# fix: unsafe
import argparse

from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--num-classes", type=int, default=37)
args = parser.parse_args([])


class Pets(nn.Module):
    def __init__(self, num_classes):
        super().__init__()
        self.num_classes = num_classes
        self.stem = nn.Linear(64, 512)
        self.classifier = nn.Sequential(nn.ReLU(), nn.Linear(512, out_features=(num_classes + 7) // 8 * 8))

    def forward(self, x):
        x = self.stem(x)
        logits = self.classifier(x)[..., :self.num_classes]
        return logits.softmax(-1)


model = Pets(args.num_classes)
