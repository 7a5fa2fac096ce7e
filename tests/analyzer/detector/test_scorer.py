"""Scores of small models, and models that are refused: missing, damaged, of another version, or answering nonsense."""

import builtins
import sys

import msgspec
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.analyzer.detector.models import (
    CHANNEL_COUNT,
    FEATURES,
    KINDS,
    save_forest,
    save_graph,
    save_models,
    save_network,
    small_card,
)
from tests.builders import TraceBuilder
from tests.shared import shared_timeline, shared_traces
from torchtraceap.analyzer.detector.card import CARD, FOREST, NETWORK, NOVELTY, write_card
from torchtraceap.analyzer.detector.features.schema import NAMES
from torchtraceap.analyzer.detector.inputs import Inputs, make_inputs
from torchtraceap.analyzer.detector.model import EventSequences, Windows
from torchtraceap.analyzer.detector.scorer import Detector, DetectorError
from torchtraceap.analyzer.detector.sequence import sequences
from torchtraceap.analyzer.timeline.build import build_timeline


def timeline_of(steps=3, layers=8):
    b = TraceBuilder()
    for number in range(steps):
        with b.step(number), b.frame("nn.Module: Net_0"):
            for layer in range(layers):
                with b.frame(f"nn.Module: Layer_{layer}"):
                    b.leaf("aten::linear", us=20, kernel="gemm", kernel_us=30)
    return build_timeline(b.build())


def inputs_of(features, region):
    """Windows of one region after the other, one in each step, with the given features."""
    count = len(features)
    start = np.arange(count, dtype=np.int64) * 100
    windows = Windows(
        start_ns=start,
        end_ns=start + 100,
        step=np.arange(count, dtype=np.int32),
        region=np.array(region, dtype=np.int32),
        regions=tuple(f"region {number}" for number in range(max(region) + 1)),
        of=np.empty(0, dtype=np.int32),
    )
    events = EventSequences(
        np.zeros((count, 48), dtype=np.uint16), np.zeros((count, 48, CHANNEL_COUNT), dtype=np.float16)
    )
    return Inputs(windows, np.array(features, dtype=np.float64), events, np.arange(count), np.arange(count))


def features_with(column, values):
    features = np.zeros((len(values), FEATURES))
    features[:, column] = values
    return features


def test_every_window_of_a_trace_gets_a_score(tmp_path):
    detector = Detector.load(save_models(tmp_path))
    timeline = timeline_of()
    scores = detector.score(timeline)
    count = len(scores.windows)
    assert count > 3
    assert scores.kinds == KINDS
    np.testing.assert_allclose(scores.bad, np.full(count, 1 / (1 + np.exp(2.0))), rtol=1e-5)
    np.testing.assert_allclose(scores.kind.sum(axis=1), scores.bad, rtol=1e-5)
    assert scores.kind.argmax(axis=1).tolist() == [1] * count
    assert not scores.is_single.any()


@pytest.mark.parametrize("name", shared_traces()[:3])
def test_recorded_traces_are_scored(tmp_path, name):
    scores = Detector.load(save_models(tmp_path, {0: 0.01, 5: -0.02})).score(shared_timeline(name))
    assert len(scores.bad) == len(scores.kind) == len(scores.is_unknown) == len(scores.windows) > 0
    assert np.all((scores.bad >= 0) & (scores.bad <= 1))


def test_a_trace_without_windows_has_no_scores(tmp_path):
    scores = Detector.load(save_models(tmp_path)).score(build_timeline(TraceBuilder().build()))
    assert len(scores.bad) == 0
    assert scores.kind.shape == (0, len(KINDS))


def test_scores_are_smoothed_over_the_steps_of_a_region(tmp_path):
    detector = Detector.load(save_models(tmp_path, {0: 1.0}))
    # One window of region 0 alone is high; region 1 is high throughout.
    inputs = inputs_of(features_with(0, [0, 8, 0, 7, 8, 9]), [0, 0, 0, 1, 1, 1])
    raw, _ = detector.raw(inputs)
    scores = detector.score_inputs(inputs)
    assert raw[1] > 0.9
    assert scores.bad[1] == pytest.approx(raw[0])
    assert scores.bad[3:].tolist() == pytest.approx([raw[4]] * 3)
    assert scores.is_single.tolist() == [False, True, False, False, False, False]


def test_windows_far_from_what_was_learned_are_unknown(tmp_path):
    detector = Detector.load(save_models(tmp_path, threshold=0.2))
    scores = detector.score_inputs(inputs_of(features_with(slice(0, 60), np.array([[0.0] * 60, [5.0] * 60])), [0, 1]))
    assert scores.is_unknown.tolist() == [False, True]


def test_reasons_are_the_features_that_raise_the_score(tmp_path):
    detector = Detector.load(save_models(tmp_path, {3: 1.5, 7: 0.5, 9: -2.0, 11: 0.25, 13: 0.1}))
    features = np.zeros((2, FEATURES))
    features[1, [3, 7, 9, 11, 13]] = 1.0
    features[1, 20] = np.nan
    nothing, reasons = detector.explain(inputs_of(features, [0, 1]), np.array([0, 1]))
    assert nothing == ()
    assert [reason.feature.name for reason in reasons] == [NAMES[3], NAMES[7], NAMES[11]]
    np.testing.assert_allclose([reason.weight for reason in reasons], [1.5, 0.5, 0.25], rtol=1e-4)


def test_inputs_are_rounded_as_those_learned_from():
    features = make_inputs(timeline_of()).features
    known = ~np.isnan(features)
    assert np.array_equal(features[known], features[known].astype(np.float16).astype(np.float64))


def test_the_network_reads_one_window_of_each_region():
    timeline = timeline_of(steps=3)
    inputs = make_inputs(timeline)
    windows = inputs.windows
    assert len(inputs.events.token) == len(inputs.shown) == len(windows.regions) < len(windows)
    assert np.array_equal(windows.region[inputs.shown][inputs.row], windows.region)
    assert set(windows.step[inputs.shown].tolist()) == {1}
    assert np.array_equal(inputs.events.token, sequences(timeline, windows).token[inputs.shown])


@pytest.mark.parametrize("name", [CARD, FOREST, NETWORK, NOVELTY])
def test_missing_files_are_told(tmp_path, name):
    save_models(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(DetectorError, match=name):
        Detector.load(tmp_path)


@pytest.mark.parametrize("name", [CARD, FOREST, NETWORK, NOVELTY])
@pytest.mark.parametrize("content", [b"", b"\xff\x00 nothing of use", b"{}", b"0" * ((16 << 20) + 1)])
def test_damaged_and_oversized_files_are_refused(tmp_path, name, content):
    save_models(tmp_path)
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DetectorError, match=name):
        Detector.load(tmp_path)


def test_models_of_another_version_are_refused(tmp_path):
    with pytest.raises(DetectorError, match="made for features-0, this version makes"):
        Detector.load(save_models(tmp_path, schema="features-0"))


@pytest.mark.parametrize(
    "changed",
    [
        {"features": NAMES[::-1]},
        {"length": 12},
        {"channels": ("one",)},
        {"kinds": ()},
        {"healthy_median": (0.0,)},
        {"kinds": ("blocking-transfer",)},
        {"kinds": ("blocking-transfer",) * 3},
        {"healthy_median": (1e300,) * FEATURES},
        {"votes": msgspec.structs.replace(small_card().votes, bad_forest=-1e308)},
        {"data": msgspec.structs.replace(small_card().data, windows=-2)},
        {"data": msgspec.structs.replace(small_card().data, bad_windows=5)},
        {"data": msgspec.structs.replace(small_card().data, windows=10**400)},
        {"data": msgspec.structs.replace(small_card().data, windows_by_kind={"launch-bound": -3})},
    ],
)
def test_cards_that_do_not_fit_are_refused(tmp_path, changed):
    save_models(tmp_path, **changed)
    with pytest.raises(DetectorError):
        Detector.load(tmp_path).score(timeline_of())


def test_a_threshold_that_is_no_probability_is_refused(tmp_path):
    save_models(tmp_path)
    write_card(small_card(threshold=1e300), tmp_path)
    with pytest.raises(DetectorError, match="figures that cannot be"):
        Detector.load(tmp_path)


def test_models_with_other_inputs_or_outputs_are_refused(tmp_path):
    save_models(tmp_path)
    save_forest(tmp_path / FOREST, {}, features=FEATURES + 1)
    with pytest.raises(DetectorError, match=r"forest\.onnx does not fit its card"):
        Detector.load(tmp_path)
    save_models(tmp_path)
    save_network(tmp_path / NETWORK, length=12)
    with pytest.raises(DetectorError, match=r"network\.onnx does not fit its card"):
        Detector.load(tmp_path)
    save_models(tmp_path)
    nodes = [helper.make_node("Identity", ["features"], ["other"])]
    inputs = [("features", TensorProto.FLOAT, [FEATURES])]
    save_graph(tmp_path / FOREST, nodes, inputs, outputs=(("other", FEATURES),))
    with pytest.raises(DetectorError, match=r"forest\.onnx does not fit its card"):
        Detector.load(tmp_path)


def test_weights_in_other_files_are_not_read(tmp_path, monkeypatch):
    folder = tmp_path / "model"
    folder.mkdir()
    save_models(folder)
    (tmp_path / "other.bin").write_bytes(bytes(4 * FEATURES))
    monkeypatch.chdir(tmp_path)
    model = onnx.load(folder / FOREST)
    (weights,) = (one for one in model.graph.initializer if one.name == "weights")
    weights.ClearField("raw_data")
    weights.data_location = TensorProto.EXTERNAL
    weights.external_data.add(key="location", value="other.bin")
    (folder / FOREST).write_bytes(model.SerializeToString())
    with pytest.raises(DetectorError, match="weights in another file"):
        Detector.load(folder)


def test_answers_that_are_no_numbers_are_refused(tmp_path):
    save_models(tmp_path)
    save_network(tmp_path / NETWORK, answer=float("nan"))
    with pytest.raises(DetectorError, match="no number"):
        Detector.load(tmp_path).score(timeline_of())


def test_answers_for_other_windows_than_asked_are_refused(tmp_path):
    save_models(tmp_path)
    nodes = [
        helper.make_node("ReduceMean", ["features"], ["bad"], axes=[0, 1], keepdims=1),
        helper.make_node("Concat", ["bad", "bad", "bad"], ["kind"], axis=1),
    ]
    save_graph(tmp_path / FOREST, nodes, [("features", TensorProto.FLOAT, [FEATURES])])
    with pytest.raises(DetectorError, match="windows"):
        Detector.load(tmp_path).score(timeline_of())


def test_without_onnxruntime_there_is_no_detector(tmp_path, monkeypatch):
    save_models(tmp_path)
    monkeypatch.delitem(sys.modules, "onnxruntime", raising=False)
    real = builtins.__import__

    def refuse(name, *rest, **named):
        if name == "onnxruntime":
            raise ImportError("not here")
        return real(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(DetectorError, match="needs onnxruntime"):
        Detector.load(tmp_path)
