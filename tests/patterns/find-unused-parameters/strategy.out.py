# at: trainer.fit(module)
# line: strategy = DDPStrategy(find_unused_parameters=True, gradient_as_bucket_view=True)
# fix: unsafe
from lightning.pytorch import Trainer
from lightning.pytorch.strategies import DDPStrategy


def main(module):
    strategy = DDPStrategy(gradient_as_bucket_view=True)
    trainer = Trainer(devices=4, strategy=strategy)
    trainer.fit(module)
