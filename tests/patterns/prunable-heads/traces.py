from tests.patterns.measured import layer_on_cpu, layers_on_device
from torchtraceap.analyzer.timeline.attention_stats import AttentionStatistics
from torchtraceap.analyzer.trace.model import Trace

EVEN = (1 / 12,) * 12
UNEVEN = (0.3, 0.2, 0.18, 0.12, 0.1, 0.05, 0.02, 0.01, 0.01, 0.005, 0.004, 0.001)


def positive_half_of_the_heads_matter() -> Trace:
    return layers_on_device([AttentionStatistics(f"blocks.{k}.attn", UNEVEN) for k in range(4)])


def positive_one_layer_of_four() -> Trace:
    layers = [AttentionStatistics(f"blocks.{k}.attn", EVEN if k else UNEVEN) for k in range(4)]
    return layers_on_device(layers)


def positive_recorded() -> Trace:
    return layer_on_cpu(AttentionStatistics("attn", (0.6, 0.38, 0.01, 0.01)))


def positive_next_to_nothing_without_gradients() -> Trace:
    said = (0.35, 0.35, 0.2, *(0.1 / 3,) * 3, *(0.0,) * 6)
    return layers_on_device([AttentionStatistics(f"blocks.{k}.attn", said, measure="norm") for k in range(4)])


def negative_little_without_gradients() -> Trace:
    """Near miss: weak by gradients, but lengths alone say less."""
    said = (*(0.19,) * 5, *(0.05 / 7,) * 7)
    said = tuple(share + 0.003 for share in said)
    total = sum(said)
    said = tuple(share / total for share in said)
    return layers_on_device([AttentionStatistics(f"blocks.{k}.attn", said, measure="norm") for k in range(4)])


def negative_even_heads() -> Trace:
    return layers_on_device([AttentionStatistics(f"blocks.{k}.attn", EVEN) for k in range(4)])


def negative_recorded_without_statistics() -> Trace:
    return layer_on_cpu(None)


def negative_little_time() -> Trace:
    """Near miss: weak heads, in the one layer of many that takes next to nothing."""
    weak = AttentionStatistics("blocks.0.attn", (0.99, *(0.01 / 11,) * 11))
    return layers_on_device(
        [*[None] * 30, None, AttentionStatistics("blocks.1.attn", (0.26, 0.25, 0.25, 0.24)), weak][:32]
    )
