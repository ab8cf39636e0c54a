"""A random model from a seed: which operator set, symbols and types, then recipes until it is long enough."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import helper

from tests.fuzz.case import FUSION, NUMERICS, TARGETS, Case, Choices, Feeds
from tests.fuzz.evaluate import IR_VERSION, Rejected, value_info
from tests.fuzz.graph import Graph, Setting
from tests.fuzz.recipe import Recipe
from tests.fuzz.recipes import RECIPES
from tests.fuzz.tensors import BF16, BOOL, F16, F32, F64, I32, I64, INTEGERS, U8, Value, onnx_type

OPSETS = range(7, 26)
MOST_OUTPUTS = 6

WILD = (".elementwise", ".movement", ".shape_values", ".casts")
"""What wild models are made of: the exclusion `not-finite-in-a-sum`."""


def make_case(seed: int, most_nodes: int = 12) -> Case:
    """The case of a seed: the same one on every machine with the same libraries."""
    rng = np.random.default_rng(seed)
    wild = bool(rng.random() < 0.04)
    graph = Graph(rng, int(rng.choice(OPSETS)), setting(rng), wild, _dtypes(rng))
    for _ in range(int(rng.integers(1, 4))):
        _attempt(graph, None)
    wanted = int(rng.integers(1, most_nodes + 1))
    table = [
        entry
        for entry in RECIPES
        if entry.since <= graph.opset <= entry.until and (not wild or entry.function.__module__.endswith(WILD))
    ]
    weights = np.array([entry.weight for entry in table])
    for _ in range(8 * wanted):
        if len(graph.steps) >= wanted:
            break
        _attempt(graph, table[int(rng.choice(len(table), p=weights / weights.sum()))])
    return finished(graph, rng, seed)


def finished(graph: Graph, rng: np.random.Generator, seed: int) -> Case:
    """The case of a graph: its model and feeds, and how it is compiled."""
    if not graph.steps:
        graph.add("Identity", graph.new_input(F32, [2]))
    model = _model(graph)
    feeds = [{value.name: value.arrays[k] for value in graph.inputs} for k in range(graph.setting.count)]
    return Case(model, feeds, _choices(rng, feeds), seed, graph.wild)


def _attempt(graph: Graph, entry: Recipe | None) -> None:
    """One recipe (or a new input); what does not fit is left out."""
    try:
        if entry is None:
            graph.new_input()
        else:
            entry.function(graph, entry.op_type)
    except Rejected:
        pass


SIZES = (1, 2, 3, 4, 5, 7, 9, 16, 17)


def setting(rng: np.random.Generator, *, symbolic: float = 0.55, pool: Sequence[int] = SIZES) -> Setting:
    """The symbols of a graph and their sizes, of `pool`; none but in a share `symbolic` of all."""
    if rng.random() >= symbolic:
        return Setting({}, int(rng.integers(1, 3)))
    count = int(rng.integers(2, 4))
    sizes = {name: [int(rng.choice(pool)) for _ in range(count)] for name in ("N", "M", "K")[: int(rng.integers(1, 4))]}
    if rng.random() < 0.25:
        sizes["N"][-1] = 0
    return Setting({name: tuple(found) for name, found in sizes.items()}, count)


def _dtypes(rng: np.random.Generator) -> Sequence[np.dtype[np.generic]]:
    """Mostly f32, one or two other types beside it."""
    others = [F64, F16, I64, I32, BOOL, U8, I64, I32, *INTEGERS]
    if rng.random() < 0.06:
        others = [BF16, BF16, I64]
    return [F32, F32, F32, *(others[int(i)] for i in rng.integers(0, len(others), 2))]


def _choices(rng: np.random.Generator, feeds: Sequence[Feeds]) -> Choices:
    target = TARGETS[int(rng.choice(len(TARGETS), p=[0.85, 0.1, 0.05]))]
    return Choices(
        fusion=FUSION[int(rng.integers(len(FUSION)))],
        numerics=NUMERICS[int(rng.integers(len(NUMERICS)))],
        threads=int(rng.integers(1, 4)),
        target=target,
        saved=bool(rng.random() < 0.1),
        sizes=_bounds(feeds),
    )


def _bounds(feeds: Sequence[Feeds]) -> str:
    """Those of symbols, where one of them is 0."""
    sizes = {size for given in feeds for array in given.values() for size in array.shape}
    return f"0..{max(64, *sizes)}" if 0 in sizes else ""


def _model(graph: Graph) -> onnx.ModelProto:
    """Results are what nobody reads and some of what is read; rarely an input or a constant, or one value under two
    names."""
    outputs = _outputs(graph)
    nodes = [step.node for step in graph.steps]
    if graph.chance(0.05):
        twice = graph.choose(outputs)
        if twice.kind == "tensor":
            copy = Value(graph.name("again"), twice.dtype, twice.arrays)
            nodes.append(helper.make_node("Identity", [twice.name], [copy.name], name=graph.name("Identity_")))
            outputs.append(copy)
    used = {name for node in nodes for name in _reads(node)} | {value.name for value in outputs}
    inputs = [graph.infos[value.name] for value in graph.inputs]
    weights = [weight for name, weight in graph.weights.items() if name in used]
    made = helper.make_graph(nodes, "random", inputs, [_declared(value) for value in outputs], weights)
    model = helper.make_model(made, opset_imports=graph.opsets(*sorted(graph.domains)), ir_version=IR_VERSION)
    return model


def _declared(value: Value) -> onnx.ValueInfoProto:
    """An output, of which only the rank is said."""
    if value.kind != "tensor":
        return value_info(value)
    return helper.make_tensor_value_info(value.name, onnx_type(value.dtype), [None] * value.rank)


def _reads(node: onnx.NodeProto) -> set[str]:
    inner = [attribute.g for attribute in node.attribute if attribute.HasField("g")]
    return {*node.input, *(name for graph in inner for child in graph.node for name in _reads(child))}


def _outputs(graph: Graph) -> list[Value]:
    read = {name for step in graph.steps for name in _reads(step.node)}
    tensors = [value for value in graph.values if value.kind == "tensor"]
    made = [value for value in tensors if not value.known and value not in graph.inputs]
    ends = [value for value in made if value.name not in read]
    found = [ends[int(i)] for i in graph.rng.permutation(len(ends))[:MOST_OUTPUTS]]
    found += [value for value in made if value.name in read and graph.chance(0.1)]
    for group, probability in ((graph.inputs, 0.04), ([value for value in tensors if value.known], 0.04)):
        if group and graph.chance(probability):
            found.append(graph.choose(group))
    return found or made[:1]
