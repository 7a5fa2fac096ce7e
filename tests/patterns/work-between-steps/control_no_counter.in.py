# at: wandb.log(
import wandb


def train(batches, net):
    for batch in batches:
        loss = net(batch).sum()
        wandb.log({"loss": loss.item()})
