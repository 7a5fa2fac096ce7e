# at: prof = torch.profiler.profile(
import torch


def run():
    prof = torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU],
        record_shapes=True,
        profile_memory=False,  # slow
        with_stack=True,
    )
    prof.start()
    y = torch.ones(2) * 2
    prof.stop()
    return y
