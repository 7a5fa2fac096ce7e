import torch


class Callback:
    def on_batch_start(self, trainer, module, batch):
        pass

    def on_batch_end(self, trainer, module, loss):
        pass


class NanGuard(Callback):
    def on_batch_end(self, trainer, module, loss):
        if not torch.isfinite(loss):
            raise RuntimeError(f"loss is {loss.item()} in step {trainer.global_step}")


class WeightNorm(Callback):
    def __init__(self, every=2):
        self.every = every
        self.history = []

    def on_batch_end(self, trainer, module, loss):
        if trainer.global_step % self.every:
            return
        total = sum(p.detach().pow(2).sum() for p in module.parameters())
        self.history.append(total.sqrt())
