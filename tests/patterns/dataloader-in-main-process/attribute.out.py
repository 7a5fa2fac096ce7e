# at: for step, (x, y) in enumerate(tqdm(self.train_loader)):
# device: cpu
# line: self.train_loader = torch.utils.data.DataLoader(
import torch
import torch.utils.data


def tqdm(iterable):
    return iterable


class Trainer:
    def __init__(self, data):
        self.train_loader = torch.utils.data.DataLoader(
            data,
            batch_size=2,
            num_workers=2,  # debugging
            persistent_workers=True,
        )
        self.total = torch.zeros(())

    def epoch(self):
        for step, (x, y) in enumerate(tqdm(self.train_loader)):
            self.total += (x * y).sum()
        return self.total


def run():
    data = torch.utils.data.TensorDataset(torch.arange(6.0), torch.ones(6))
    return Trainer(data).epoch()
