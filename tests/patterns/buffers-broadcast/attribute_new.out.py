# at: out = self.model(batch)
# line: self.model = DDP(
# torch: 2.13.0
# fix: unsafe
from torch.nn.parallel import DistributedDataParallel as DDP


class Trainer:
    def __init__(self, model, local_rank):
        self.model = DDP(
            model,
            device_ids=[local_rank],
            forward_sync_buffers=False,  # the default
        )

    def step(self, batch):
        out = self.model(batch)
        return out.mean()
