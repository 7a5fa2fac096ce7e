# at: torch.accelerator.synchronize()
# fix: unsafe
import torch


class Trainer:
    debug = True

    def after_step(self):
        if self.debug:
            pass

    def fit(self, batches):
        for batch in batches:
            self.step(batch)
            self.after_step()
