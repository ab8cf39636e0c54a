"""Control flow whose course is known while reading, and branches that may both be computed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from fuseline.errors import FuselineError
from fuseline.frontends.onnx import scalars
from fuseline.frontends.onnx.emission import elementwise
from fuseline.frontends.onnx.host_values import Value, describe
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.registry import onnx_op
from fuseline.frontends.onnx.tensors import InvalidSubgraph, NoNativeLowering, OneWay, Tensor

UNROLLED_NODES = 2048
"""Nodes that unrolling a loop may make; longer loops run on the host."""


@onnx_op("If")
def branch(node: OnnxNode) -> Sequence[Value]:
    """The branch taken if that is known, else both, element by element selected where they agree in shape.

    Branches that cannot both be computed are read again, as programs of their own (`branches.py`): what was read of
    them here stands on values of this program, which are arguments there. It takes 2 to 5 % of the compile of such a
    branch. Raises FuselineError: E0105 for a branch with other than the node's number of outputs."""
    condition = node[0]
    branches = [node.attributes[name].as_graph() for name in ("then_branch", "else_branch")]
    if any(len(graph.outputs) != node.output_count for graph in branches):
        message = (
            f"branches of {len(branches[0].outputs)} and {len(branches[1].outputs)} outputs for a node of "
            f"{node.output_count}"
        )
        raise FuselineError("E0105", message, node=node.label)
    if condition.is_constant:
        return _taken(node, branches[0 if bool(condition.numbers().reshape(-1)[0]) else 1])
    mark = node.program.mark()
    try:
        return _merged(node, condition, branches)
    except NoNativeLowering:
        node.program.rollback(mark)
        way = node.only_way()
        if way is None:
            raise
    return _taken(node, branches[0 if way else 1])


def _taken(node: OnnxNode, graph: ir.Graph) -> list[Value]:
    """The outputs of a branch that will run: what is wrong in it is wrong with the model."""
    try:
        return node.inline(graph)
    except InvalidSubgraph as error:
        raise error.error from error


def _merged(node: OnnxNode, condition: Tensor, branches: Sequence[ir.Graph]) -> list[Value]:
    calls, required = len(node.importer.host.declarations), len(node.program.ctx.requirements)
    pairs = list(zip(*_both(node, branches), strict=True))
    if len(node.importer.host.declarations) > calls:
        raise NoNativeLowering("runtime-branch", "a branch runs on the host, and only the one taken may run")
    if len(node.program.ctx.requirements) > required:
        raise NoNativeLowering("runtime-branch", "a branch refuses sizes, and only the one taken may")
    if any(x.dims != y.dims or x.dtype != y.dtype for x, y in pairs):
        raise NoNativeLowering("runtime-branch", "the branches differ in shape or type")
    return [_selected(node, condition, x, y) for x, y in pairs]


def _both(node: OnnxNode, branches: Sequence[ir.Graph]) -> list[list[Tensor]]:
    """The outputs of both branches. Raises OneWay where one of them is invalid and the other is not."""
    found: list[list[Tensor]] = []
    invalid: list[InvalidSubgraph] = []
    for graph in branches:
        try:
            found.append(_inlined(node, graph))
        except InvalidSubgraph as error:
            invalid.append(error)
    if invalid:
        raise OneWay(invalid[0], found[0]) if found else invalid[0]
    return found


def _inlined(node: OnnxNode, graph: ir.Graph) -> list[Tensor]:
    """The outputs, which must all be tensors, of a subgraph that may or may not run."""
    with node.importer.assumptions.in_doubt():
        return _tensors(node.inline(graph))


def _selected(node: OnnxNode, condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    flag = Tensor(condition.dtype, (), base=condition, axes=(None,) * condition.rank) if condition.rank else condition
    return elementwise(node, [flag, x, y], x.dtype, lambda b, c, p, q: scalars.select(b, c, p, q), x.dims)


@onnx_op("Loop", of_sequences=True)
def loop(node: OnnxNode) -> Sequence[Value]:
    """A loop of which it is known when it ends, by its trip count or a condition, unrolled. States may be sequences
    that are known."""
    body = node.attributes["body"].as_graph()
    states = [node.value(index) for index in range(2, len(node.inputs))]
    collected: list[list[Tensor]] = [[] for _ in range(len(body.outputs) - 1 - len(states))]
    going, trips = _truth(node.get(1)), _trips(node, body)
    for trip in range(trips):
        if not going:
            break
        number = Tensor(np.dtype(np.int64), (), array=np.asarray(trip, np.int64))
        outputs = _call(node, body, [number, Tensor(np.dtype(bool), (), array=np.asarray(True)), *states])
        going = _truth(_tensors(outputs[:1])[0])
        states = outputs[1 : 1 + len(states)]
        for column, value in zip(collected, _tensors(outputs[1 + len(states) :]), strict=True):
            column.append(value)
    if going and node.get(0) is None:
        raise NoNativeLowering("long-loop", f"more than {trips} trips")
    return [*states, *(_stacked(node, column) for column in collected)]


def _trips(node: OnnxNode, body: ir.Graph) -> int:
    """How many trips there are at the most, those that are unrolled where the condition alone tells."""
    most, given = UNROLLED_NODES // max(len(body), 1), node.get(0)
    count = most if given is None else int(given.numbers().reshape(-1)[0])
    if count > most:
        raise NoNativeLowering("long-loop", f"{count} trips")
    return count


def _truth(condition: Tensor | None) -> bool:
    """Whether a loop goes on. Raises NoNativeLowering where that is computed."""
    if condition is not None and not condition.is_constant:
        raise NoNativeLowering("runtime-loop", "the condition is computed")
    return condition is None or bool(condition.numbers().reshape(-1)[0])


def _call(node: OnnxNode, body: ir.Graph, arguments: Sequence[Value]) -> list[Value]:
    from dataclasses import replace

    bound = {str(value.name): t for value, t in zip(body.inputs, arguments, strict=True)}
    with node.importer.assumptions.in_doubt():
        return replace(node, scope={**node.scope, **bound}).inline(body)


def _tensors(values: Sequence[Value]) -> list[Tensor]:
    """Values that must all be tensors."""
    tensors = [value for value in values if isinstance(value, Tensor)]
    if len(tensors) < len(values):
        raise NoNativeLowering("host-value", describe(values))
    return tensors


def _stacked(node: OnnxNode, tensors: Sequence[Tensor]) -> Tensor:
    from fuseline.frontends.onnx.emission import reshape
    from fuseline.frontends.onnx.ops.shape import joined

    if not tensors or any(t.dims != tensors[0].dims for t in tensors):
        raise NoNativeLowering("runtime-loop", "scan outputs differ in shape or are none")
    return joined(node, [reshape(node, t, (1, *t.dims)) for t in tensors], 0)


@onnx_op("Scan", since=9)
def scan(node: OnnxNode) -> Sequence[Tensor]:
    """A scan over static lengths along first axes, unrolled."""
    from fuseline.frontends.onnx.emission import reshape
    from fuseline.frontends.onnx.ops.slices import slice_of

    body = node.attributes["body"].as_graph()
    inputs = node.integer("num_scan_inputs")
    directions = [*node.integers("scan_input_directions"), *node.integers("scan_output_directions")]
    axes = [*node.integers("scan_input_axes"), *node.integers("scan_output_axes")]
    if any(directions) or any(axes):
        raise NoNativeLowering("scan-option", "axes or directions")
    states, sequences = (
        [node[i] for i in range(len(node.inputs) - inputs)],
        [node[len(node.inputs) - inputs + i] for i in range(inputs)],
    )
    count = sequences[0].dims[0]
    if not isinstance(count, int) or count * max(len(body), 1) > UNROLLED_NODES:
        raise NoNativeLowering("long-loop", f"{count} steps")
    collected: list[list[Tensor]] = [[] for _ in range(len(body.outputs) - len(states))]
    for step in range(count):
        rows = [slice_of(node, t, (step, *[0] * (t.rank - 1)), (1, *t.dims[1:]), [1] * t.rank) for t in sequences]
        outputs = _tensors(_call(node, body, [*states, *(reshape(node, t, t.dims[1:]) for t in rows)]))
        states = outputs[: len(states)]
        for column, value in zip(collected, outputs[len(states) :], strict=True):
            column.append(value)
    return [*states, *(_stacked(node, column) for column in collected)]
