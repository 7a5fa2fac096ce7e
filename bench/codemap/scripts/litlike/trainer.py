from __future__ import annotations

import torch
from torch.profiler import ProfilerActivity, profile, schedule

from callbacks import Callback
from module import BaseModule


class Trainer:
    def __init__(self, max_steps: int = 5, callbacks: list[Callback] | None = None, clip: float | None = None):
        self.max_steps = max_steps
        self.callbacks = callbacks or []
        self.clip = clip
        self.global_step = 0
        self.metrics = {}

    def _call(self, hook: str, *args) -> None:
        for callback in self.callbacks:
            getattr(callback, hook)(self, *args)

    def _run_optimizer(self, module: BaseModule, batch, batch_idx: int) -> torch.Tensor:
        def closure():
            self.optimizer.zero_grad(set_to_none=True)
            out = module.training_step(batch, batch_idx)
            loss = out["loss"] if isinstance(out, dict) else out
            loss.backward()
            module.on_after_backward()
            if self.clip:
                torch.nn.utils.clip_grad_norm_(module.parameters(), self.clip)
            return loss

        return self.optimizer.step(closure)

    def fit(self, module: BaseModule, train_loader, val_loader=None) -> None:
        module.trainer = self
        self.optimizer, self.scheduler = module.configure_optimizers()
        with profile(
            activities=[ProfilerActivity.CPU],
            schedule=schedule(wait=1, warmup=1, active=3),
            on_trace_ready=lambda p: p.export_chrome_trace("trace.json"),
        ) as prof:
            module.train()
            for batch_idx, batch in enumerate(train_loader):
                if self.global_step >= self.max_steps:
                    break
                self._call("on_batch_start", module, batch)
                loss = self._run_optimizer(module, batch, batch_idx)
                self.scheduler.step()
                self._call("on_batch_end", module, loss)
                self.global_step += 1
                prof.step()
        if val_loader is not None:
            self.validate(module, val_loader)

    @torch.no_grad()
    def validate(self, module: BaseModule, loader) -> None:
        module.eval()
        for i, batch in enumerate(loader):
            module.validation_step(batch, i)
