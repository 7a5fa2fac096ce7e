"""The trained forests as an ONNX graph: `TreeEnsembleRegressor`s, whose branches know where missing values go.

Built from scikit-learn's tree arrays: that keeps leaves to the classes they have, where converters write every class
into every leaf and make the file several times as large.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper
from sklearn.ensemble import ExtraTreesClassifier

from ..card import FOREST
from .forest import Forest

OPSET = 17
_ML_OPSET = 3
_IR = 8
"""Old enough for every onnxruntime that is allowed."""


def export_forest(forest: Forest, features: int, folder: Path) -> None:
    """Write `forest.onnx`; see `card.FOREST` for its inputs and outputs."""
    rows = helper.make_tensor_value_info("features", TensorProto.FLOAT, ["windows", features])
    bad = helper.make_tensor_value_info("bad", TensorProto.FLOAT, ["windows", 1])
    kind = helper.make_tensor_value_info("kind", TensorProto.FLOAT, ["windows", forest.kinds])
    nodes = [
        _ensemble(forest.bad, {1: 0}, 1, "bad"),
        _ensemble(forest.kind, dict(enumerate(np.asarray(forest.kind.classes_).tolist())), forest.kinds, "kind"),
    ]
    save_graph(nodes, [rows], [bad, kind], [], folder / FOREST)


def save_graph(
    nodes: list[onnx.NodeProto],
    inputs: list[onnx.ValueInfoProto],
    outputs: list[onnx.ValueInfoProto],
    weights: list[onnx.TensorProto],
    path: Path,
) -> None:
    """Check a graph and write it."""
    graph = helper.make_graph(nodes, path.stem, inputs, outputs, weights)
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", _ML_OPSET)]
    model = helper.make_model(graph, opset_imports=opsets, producer_name="torchtraceap", ir_version=_IR)
    onnx.checker.check_model(model)
    path.write_bytes(model.SerializeToString())


def _ensemble(forest: ExtraTreesClassifier, target_of: dict[int, int], targets: int, output: str) -> onnx.NodeProto:
    """The mean of the trees' class shares; `target_of`: where in the output each class of the forest stands."""
    columns = _Columns()
    for number, tree in enumerate(forest.estimators_):
        columns.add(tree.tree_, number, target_of, len(forest.estimators_))
    node = helper.make_node("TreeEnsembleRegressor", ["features"], [output], domain="ai.onnx.ml", n_targets=targets)
    settings = {"aggregate_function": "SUM", "post_transform": "NONE", **columns.as_attributes()}
    node.attribute.extend(helper.make_attribute(name, value) for name, value in settings.items())
    return node


class _Columns:
    """Nodes and leaves of many trees, as the operator wants them: one list for each fact."""

    def __init__(self) -> None:
        self._parts: dict[str, list[np.ndarray]] = {}

    def add(self, tree: object, number: int, target_of: dict[int, int], trees: int) -> None:
        """Add a scikit-learn tree. It goes left where `float32 value <= float64 threshold`."""
        left, right = tree.children_left, tree.children_right  # type: ignore[attr-defined]
        is_leaf = left < 0
        share = tree.value[:, 0, :]  # type: ignore[attr-defined]
        share = share / share.sum(axis=1, keepdims=True)
        leaf, place = np.nonzero(is_leaf[:, None] & (share > 0) & np.isin(np.arange(share.shape[1]), list(target_of)))
        nodes = np.arange(len(left))
        self._put("nodes_treeids", np.full(len(left), number))
        self._put("nodes_nodeids", nodes)
        self._put("nodes_featureids", np.where(is_leaf, 0, tree.feature))  # type: ignore[attr-defined]
        self._put("nodes_values", np.where(is_leaf, 0.0, _round_down(tree.threshold)))  # type: ignore[attr-defined]
        self._put("nodes_modes", np.where(is_leaf, "LEAF", "BRANCH_LEQ"))
        self._put("nodes_truenodeids", np.where(is_leaf, 0, left))
        self._put("nodes_falsenodeids", np.where(is_leaf, 0, right))
        self._put("nodes_missing_value_tracks_true", np.where(is_leaf, 0, tree.missing_go_to_left))  # type: ignore[attr-defined]
        self._put("target_treeids", np.full(len(leaf), number))
        self._put("target_nodeids", leaf)
        self._put("target_ids", np.array([target_of.get(column, 0) for column in range(share.shape[1])])[place])
        self._put("target_weights", share[leaf, place] / trees)

    def _put(self, name: str, values: np.ndarray) -> None:
        self._parts.setdefault(name, []).append(values)

    def as_attributes(self) -> dict[str, list[int] | list[float] | list[str]]:
        return {name: np.concatenate(parts).tolist() for name, parts in self._parts.items()}


def _round_down(threshold: np.ndarray) -> np.ndarray:
    """The largest float32 that is no larger: a float32 value is below the one as it is below the other."""
    near = threshold.astype(np.float32)
    return np.where(near > threshold, np.nextafter(near, np.float32(-np.inf)), near)
