# at: prof = torch.profiler.profile(
import torch


def run():
    prof = torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU],
        record_shapes=False,
        profile_memory=False,  # slow
    )
    prof.start()
    y = torch.ones(2) * 2
    prof.stop()
    return y
