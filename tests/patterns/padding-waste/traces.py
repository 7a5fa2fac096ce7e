from tests.patterns.measured import layer_on_cpu, layers_on_device
from torchtraceap.analyzer.timeline.attention_stats import AttentionStatistics
from torchtraceap.analyzer.trace.model import Trace


def positive_mostly_padding() -> Trace:
    layers = [AttentionStatistics(f"blocks.{k}.attn", valid_share=0.4) for k in range(4)]
    return layers_on_device(layers, mask=(8, 1, 1, 1024))


def positive_recorded() -> Trace:
    return layer_on_cpu(AttentionStatistics("attn", valid_share=0.3))


def negative_little_padding() -> Trace:
    layers = [AttentionStatistics(f"blocks.{k}.attn", valid_share=0.92) for k in range(4)]
    return layers_on_device(layers, mask=(8, 1, 1, 1024))


def negative_mask_alone() -> Trace:
    """Near miss: a mask for each sequence tells that there is padding, not how much: a possibility, no more."""
    return layers_on_device([None] * 4, mask=(8, 1, 1, 1024))


def negative_one_mask_for_all() -> Trace:
    return layers_on_device([None] * 4, mask=(1, 1, 1024, 1024))
