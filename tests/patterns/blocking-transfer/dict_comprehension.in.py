# at: batch = {
import torch
from torch.utils.data import DataLoader, TensorDataset


class Pairs(TensorDataset):
    def __getitem__(self, i):
        return {"image": self.tensors[0][i], "label": self.tensors[1][i]}


def run():
    loader = DataLoader(Pairs(torch.arange(4.0), torch.arange(4)), batch_size=2, pin_memory=True)
    device = torch.device("cpu")
    out = []
    for batch in loader:
        batch = {
            k: v.to(device)  # alle
            for k, v in batch.items()
        }
        out.append(batch["image"] + batch["label"])
    return out
