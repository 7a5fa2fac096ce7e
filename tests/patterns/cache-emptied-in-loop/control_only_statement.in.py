# at: torch.cuda.empty_cache()
import torch


def release():
    torch.cuda.empty_cache()
