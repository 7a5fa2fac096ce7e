"""The trained network as an ONNX graph, built operator by operator: torch's own exporters want packages beside it."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from torch import Tensor, nn

from .. import vocabulary
from ..card import NETWORK
from .export import save_graph
from .network import FURTHEST, Block, Network, Overall

_END = np.iinfo(np.int64).max


def export_network(network: Network, length: int, folder: Path) -> None:
    """Write `network.onnx`; see `card.NETWORK` for its inputs and outputs. `length`: events of a window."""
    graph = _Graph()
    x = _events(graph, network)
    vectors = _vectors(graph, network, *x, _overall(graph, network.overall))
    graph.name(graph.add("Sigmoid", graph.linear(vectors, network.bad)), "bad")
    graph.name(graph.add("Softmax", graph.linear(vectors, network.kind), axis=1), "kind")
    channels, kinds = network.figures.in_features, network.kind.out_features
    inputs = [
        helper.make_tensor_value_info("token", TensorProto.INT64, ["windows", length]),
        helper.make_tensor_value_info("figures", TensorProto.FLOAT, ["windows", length, channels]),
        helper.make_tensor_value_info("features", TensorProto.FLOAT, ["windows", len(network.overall.center)]),
    ]
    outputs = [
        helper.make_tensor_value_info("bad", TensorProto.FLOAT, ["windows", 1]),
        helper.make_tensor_value_info("kind", TensorProto.FLOAT, ["windows", kinds]),
    ]
    save_graph(graph.nodes, inputs, outputs, graph.weights, folder / NETWORK)


def _events(graph: _Graph, network: Network) -> tuple[str, str]:
    """The events after all blocks, and their mask."""
    is_padding = graph.add("Equal", "token", graph.constant(np.int64(vocabulary.PADDING)))
    mask = graph.add("Cast", graph.add("Not", is_padding), to=TensorProto.FLOAT)
    mask = graph.add("Unsqueeze", mask, graph.constant(np.array([2])))
    word = graph.add("Gather", graph.weight(network.word.weight), "token")
    x = graph.add("Concat", word, graph.linear("figures", network.figures), axis=2)
    x = graph.add("Mul", graph.add("Relu", graph.linear(x, network.enter)), mask)
    for block in network.blocks:
        assert isinstance(block, Block)
        mask = graph.add("ReduceMax", graph.in_pairs(mask, 1, flat=False), axes=[2], keepdims=0)
        x = _block(graph, block, x, mask)
    return x, mask


def _overall(graph: _Graph, overall: Overall) -> str:
    center = graph.weight(overall.center)
    is_missing = graph.add("IsNaN", "features")
    usual = graph.add("Where", is_missing, center, "features")
    distance = graph.add("Div", graph.add("Sub", usual, center), graph.weight(overall.scale))
    distance = graph.add("Clip", distance, *(graph.constant(np.float32(end)) for end in (-FURTHEST, FURTHEST)))
    missing = graph.add("Cast", is_missing, to=TensorProto.FLOAT)
    return graph.gelu(graph.linear(graph.add("Concat", distance, missing, axis=1), overall.enter))


def _vectors(graph: _Graph, network: Network, x: str, mask: str, overall: str) -> str:
    bias = graph.add("Mul", graph.add("Sub", mask, graph.constant(np.float32(1.0))), graph.constant(np.float32(1e4)))
    scores = graph.add("Add", graph.linear(x, network.telling), bias)
    attention = graph.add("Transpose", graph.add("Softmax", scores, axis=1), perm=[0, 2, 1])
    picked = graph.add("Flatten", graph.add("MatMul", attention, x), axis=1)
    largest = graph.add("ReduceMax", graph.add("Mul", x, mask), axes=[1], keepdims=0)
    norm, linear = network.sum_up[0], network.sum_up[1]
    assert isinstance(norm, nn.LayerNorm)
    assert isinstance(linear, nn.Linear)
    both = graph.norm(graph.add("Concat", picked, largest, overall, axis=1), norm)
    return graph.gelu(graph.linear(both, linear))


def _block(graph: _Graph, block: Block, x: str, mask: str) -> str:
    width = block.leave.in_features
    x = graph.add("Mul", graph.linear(graph.in_pairs(x, width, flat=True), block.merge), mask)
    y = graph.add("Mul", graph.norm(x, block.norm), mask)
    y = graph.add("Pad", y, graph.constant(np.array([0, 1, 0, 0, 1, 0])))
    shifted = [
        graph.add("Mul", graph.part(y, start, end, axis=1), graph.weight(block.along[number]))
        for number, (start, end) in enumerate(((0, -2), (1, -1), (2, _END)))
    ]
    y = graph.linear(graph.add("Add", graph.add("Add", *shifted[:2]), shifted[2]), block.across)
    value, gate = graph.part(y, 0, width, axis=2), graph.part(y, width, _END, axis=2)
    gated = graph.add("Mul", value, graph.add("Sigmoid", gate))
    return graph.add("Mul", graph.add("Add", x, graph.linear(gated, block.leave)), mask)


class _Graph:
    """Nodes and weights as they come; every result has a name of its own."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def add(self, operator: str, *inputs: str, **attributes: object) -> str:
        """The name of an operator's result."""
        result = f"r{len(self.nodes)}"
        node = helper.make_node(operator, list(inputs), [result])
        node.attribute.extend(helper.make_attribute(name, value) for name, value in attributes.items())
        self.nodes.append(node)
        return result

    def name(self, result: str, output: str) -> None:
        """Give a result the name of an output."""
        self.nodes.append(helper.make_node("Identity", [result], [output]))

    def constant(self, value: np.ndarray | np.generic) -> str:
        """The name of a constant."""
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def weight(self, tensor: Tensor) -> str:
        """The name of a trained weight."""
        return self.constant(tensor.detach().numpy())

    def part(self, x: str, start: int, end: int, axis: int) -> str:
        """`x` from `start` to `end` along an axis."""
        return self.add("Slice", x, *(self.constant(np.array([at])) for at in (start, end, axis)))

    def in_pairs(self, x: str, width: int, flat: bool) -> str:
        """Pairs of neighbours of `x`, (windows, length, width): beside each other, or as an axis of their own."""
        shape = (0, -1, 2 * width) if flat else (0, -1, 2, width)
        return self.add("Reshape", x, self.constant(np.array(shape)))

    def linear(self, x: str, layer: nn.Linear) -> str:
        """`layer(x)`."""
        product = self.add("MatMul", x, self.weight(layer.weight.T))
        return self.add("Add", product, self.weight(layer.bias))

    def norm(self, x: str, layer: nn.LayerNorm) -> str:
        """`layer(x)`."""
        scale, shift = self.weight(layer.weight), self.weight(layer.bias)
        return self.add("LayerNormalization", x, scale, shift, axis=-1, epsilon=layer.eps)

    def gelu(self, x: str) -> str:
        """x / 2 * (1 + erf(x / sqrt(2)))."""
        erf = self.add("Erf", self.add("Mul", x, self.constant(np.float32(1 / math.sqrt(2)))))
        one = self.add("Add", erf, self.constant(np.float32(1.0)))
        return self.add("Mul", self.add("Mul", x, one), self.constant(np.float32(0.5)))
