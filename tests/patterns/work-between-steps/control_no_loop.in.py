# at: torch.save(
# confirmed: no
import torch


def finish(net):
    torch.save(net.state_dict(), "net.pt")
