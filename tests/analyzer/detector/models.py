"""Small models for tests of the scorer, built operator by operator, with a card that fits them."""

from pathlib import Path

import msgspec
import numpy as np
from onnx import TensorProto, helper, numpy_helper

from torchtraceap.analyzer.detector.card import FOREST, NETWORK, NOVELTY, Card, Data, Votes, write_card
from torchtraceap.analyzer.detector.features.schema import NAMES
from torchtraceap.analyzer.detector.inputs import SCHEMA
from torchtraceap.analyzer.detector.novelty import Novelty
from torchtraceap.analyzer.detector.sequence import CHANNELS, LENGTH

FEATURES = len(NAMES)
CHANNEL_COUNT = len(CHANNELS)
KINDS = ("blocking-transfer", "launch-bound", "unfused-attention")


def save_graph(path, nodes, inputs, weights=(), outputs=(("bad", 1), ("kind", 3))):
    """A model with the outputs that the scorer wants."""
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info(name, kind, ["windows", *shape]) for name, kind, shape in inputs],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["windows", size]) for name, size in outputs],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in weights],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path.write_bytes(model.SerializeToString())


def save_forest(path, weights, bias=-2.0, kind=(0.2, 0.5, 0.3), features=FEATURES):
    """P(bad) = sigmoid(features @ weights + bias), missing ones counting as 0; P(kind | bad) is fixed.

    `weights`: of columns, by their number; of the others 0."""
    column = np.zeros((features, 1), dtype=np.float32)
    for place, weight in dict(weights).items():
        column[place] = weight
    nodes = [
        helper.make_node("IsNaN", ["features"], ["missing"]),
        helper.make_node("Where", ["missing", "zero", "features"], ["known"]),
        helper.make_node("MatMul", ["known", "weights"], ["sum"]),
        helper.make_node("Add", ["sum", "bias"], ["logit"]),
        helper.make_node("Sigmoid", ["logit"], ["bad"]),
        helper.make_node("Mul", ["bad", "zero"], ["nothing"]),
        helper.make_node("Add", ["nothing", "shares"], ["kind"]),
    ]
    initial = [
        ("zero", np.float32(0)),
        ("weights", column),
        ("bias", np.float32(bias)),
        ("shares", np.array(kind, dtype=np.float32)),
    ]
    save_graph(path, nodes, [("features", TensorProto.FLOAT, [features])], initial)


def save_network(path, answer=0.5, length=LENGTH, channels=CHANNEL_COUNT, kind=(0.2, 0.5, 0.3)):
    """P(bad) is the same for every window."""
    nodes = [
        helper.make_node("ReduceMax", ["figures"], ["largest"], axes=[1, 2], keepdims=0),
        helper.make_node("Unsqueeze", ["largest", "one"], ["column"]),
        helper.make_node("Mul", ["column", "zero"], ["nothing"]),
        helper.make_node("Add", ["nothing", "answer"], ["bad"]),
        helper.make_node("Add", ["nothing", "shares"], ["kind"]),
    ]
    inputs = [
        ("token", TensorProto.INT64, [length]),
        ("figures", TensorProto.FLOAT, [length, channels]),
        ("features", TensorProto.FLOAT, [FEATURES]),
    ]
    initial = [
        ("one", np.array([1])),
        ("zero", np.float32(0)),
        ("answer", np.float32(answer)),
        ("shares", np.array(kind, dtype=np.float32)),
    ]
    save_graph(path, nodes, inputs, initial)


def small_card(**changed):
    """A card for these models."""
    card = Card(
        schema=SCHEMA,
        features=NAMES,
        kinds=KINDS,
        length=LENGTH,
        channels=CHANNELS,
        votes=Votes(bad_forest=1.0, bad_network=0.0, bad_bias=0.0, kind_forest=0.5, kind_network=0.5),
        threshold=0.5,
        healthy_median=(0.0,) * len(NAMES),
        healthy_spread=(1.0,) * len(NAMES),
        data=Data(
            traces=1,
            runs=1,
            windows=1,
            bad_windows=0,
            families=(),
            devices=(),
            test_families=(),
            test_devices=(),
            windows_by_kind={},
        ),
        figures=(),
        reliability=(),
        limits=(),
        seed=0,
        made_with={},
    )
    return msgspec.structs.replace(card, **changed)


def save_models(folder: Path, weights=(), threshold=1e6, **card):
    """All files of a detector."""
    write_card(small_card(**card), folder)
    save_forest(folder / FOREST, weights)
    save_network(folder / NETWORK)
    Novelty(np.zeros(FEATURES), np.ones(FEATURES), np.zeros((1, FEATURES)), threshold).save(folder / NOVELTY)
    return folder
