"""Small made datasets whose windows have kinds that can be told from features and from sequences."""

import numpy as np

from torchtraceap.analyzer.detector import vocabulary
from torchtraceap.analyzer.detector.sequence import CHANNELS
from torchtraceap.analyzer.detector.training.dataset import TEST_DEVICES, TEST_FAMILIES, Dataset

KINDS = ("host-scalar-read", "unfused-attention", "fp32-without-autocast", "pointwise-chain")
LENGTH = 16
FEATURES = 10
TELLING_WORDS = ("aten::item", "aten::_softmax", "kernel GEMM_SIMT FP32", "aten::mul")
ORDINARY_WORDS = ("aten::conv2d", "aten::add", "aten::linear", "aten::copy_", "kernel GEMM_TENSOR_CORE HALF")


def numbers(words):
    return np.array([vocabulary.WORDS.index(word) for word in words], dtype=np.uint16)


def made_dataset(traces=120, windows=6, steps=2, seed=0):
    """Traces of test and training families and devices; kind k shows in feature k and in its word."""
    random = np.random.default_rng(seed)
    families = [*sorted(TEST_FAMILIES)[:2], *(f"family {n}" for n in range(6))]
    devices = [*sorted(TEST_DEVICES)[:1], "cpu", "A100"]
    has = random.random((traces, len(KINDS))) < 0.35
    trace = np.repeat(np.arange(traces, dtype=np.int32), windows * steps)
    region = np.tile(np.arange(windows, dtype=np.int32), traces * steps)
    step = np.tile(np.repeat(np.arange(steps, dtype=np.int16), windows), traces)
    kind = random.integers(0, len(KINDS), (traces, windows))[trace, region]
    is_spoiled = has[trace, kind] & (random.random((traces, windows)) < 0.6)[trace, region]
    count = len(trace)
    label = np.zeros((count, len(KINDS)), dtype=np.float16)
    label[np.flatnonzero(is_spoiled), kind[is_spoiled]] = random.uniform(0.3, 1.0, is_spoiled.sum())
    shown = np.zeros((traces, len(KINDS)), dtype=np.bool_)
    shown[trace[is_spoiled], kind[is_spoiled]] = True
    features = random.normal(size=(count, FEATURES))
    features[np.flatnonzero(is_spoiled), kind[is_spoiled]] += 4.0
    features[random.random(features.shape) < 0.1] = np.nan
    token = random.choice(numbers(ORDINARY_WORDS), (count, LENGTH))
    token[np.flatnonzero(is_spoiled), random.integers(0, 8, is_spoiled.sum())] = numbers(TELLING_WORDS)[
        kind[is_spoiled]
    ]
    token[np.arange(LENGTH) >= random.integers(8, LENGTH + 1, (count, 1))] = vocabulary.PADDING
    figures = random.random((count, LENGTH, len(CHANNELS))) * (token > 0)[:, :, None]
    device = random.choice(devices, traces)
    return Dataset(
        schema="made",
        kinds=np.array(KINDS),
        feature_names=np.array([f"cost.{n}" for n in range(FEATURES)]),
        features=features.astype(np.float16),
        token=token,
        figures=figures.astype(np.float16),
        label=label,
        cost=np.full(count, 1 / windows, dtype=np.float32),
        rule_score=np.zeros((count, len(KINDS)), dtype=np.float16),
        region=region,
        step=step,
        trace=trace,
        run=np.arange(traces, dtype=np.int32),
        family=random.choice(families, traces),
        device=device,
        source=np.where(device == "cpu", "cpu", "simulated"),
        training=np.ones(traces, dtype=np.bool_),
        variant=np.full(traces, "full"),
        injected=shown,
    )
