from tests.patterns.measured import layer_on_cpu, layers_on_device
from torchtraceap.analyzer.timeline.attention_stats import AttentionStatistics, Reach
from torchtraceap.analyzer.trace.model import Trace

NEAR = (Reach(8, 0.71), Reach(16, 0.9), Reach(32, 0.97), Reach(64, 0.99))
FAR = (Reach(8, 0.05), Reach(64, 0.2), Reach(256, 0.6), Reach(512, 0.96))


def positive_near_by() -> Trace:
    return layers_on_device([AttentionStatistics(f"blocks.{k}.attn", (), NEAR) for k in range(4)])


def positive_first_layers() -> Trace:
    return layers_on_device([AttentionStatistics(f"blocks.{k}.attn", (), FAR if k > 1 else NEAR) for k in range(4)])


def positive_near_by_on_the_image_only() -> Trace:
    """One row away is 32 tokens away: along the tokens the window is half of them, on the image 7 x 7."""
    along, around = (Reach(96, 0.7), Reach(256, 0.99)), (Reach(1, 0.4), Reach(3, 0.97))
    said = AttentionStatistics("blocks.0.attn", (), along, grid=(32, 32), reach_2d=around)
    return layers_on_device([said] * 4)


def positive_recorded() -> Trace:
    return layer_on_cpu(AttentionStatistics("attn", (), (Reach(4, 0.8), Reach(16, 0.98))), tokens=512)


def negative_everywhere() -> Trace:
    return layers_on_device([AttentionStatistics(f"blocks.{k}.attn", (), FAR) for k in range(4)])


def negative_far_on_the_image_too() -> Trace:
    around = (Reach(1, 0.1), Reach(8, 0.6), Reach(12, 0.96))
    return layers_on_device([AttentionStatistics("blocks.0.attn", (), FAR, grid=(32, 32), reach_2d=around)] * 4)


def negative_few_tokens() -> Trace:
    """Near miss: the reach is short, but so is the sequence."""
    return layers_on_device([AttentionStatistics("blocks.0.attn", (), NEAR)], tokens=196)


def negative_window_of_half_the_tokens() -> Trace:
    return layers_on_device([AttentionStatistics("blocks.0.attn", (), (Reach(64, 0.96),))], tokens=256)
