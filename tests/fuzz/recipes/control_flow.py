"""Subgraphs: If, Loop and Scan, which read values from outside."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import helper

from tests.fuzz.evaluate import Rejected, tensor_of
from tests.fuzz.graph import Graph
from tests.fuzz.recipe import recipe
from tests.fuzz.tensors import BOOL, F32, F64, I32, I64, Value, onnx_type

NUMBERS = (F32, F32, F64, I32, I64)
INNER = ("Add", "Mul", "Sub", "Max", "Min")


def _info(name: str, dtype: Any, shape: Any = None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, onnx_type(dtype), shape)


def _body(g: Graph, x: str, dtype: Any, captured: Value, result: str) -> list[onnx.NodeProto]:
    """A few nodes from `x` and a value from outside to `result`, of the shape of `x` where the value broadcasts to
    it."""
    nodes: list[onnx.NodeProto] = []
    last = x
    for _ in range(g.number(0, 2)):
        name = g.name("b")
        op = g.choose(["Neg", "Abs", "Tanh" if dtype in (F32, F64) else "Neg"])
        nodes.append(helper.make_node(op, [last], [name]))
        last = name
    op = g.choose(INNER if g.opset >= 12 else INNER[:3])
    return [*nodes, helper.make_node(op, [last, captured.name], [result])]


@recipe("If", weight=0.6)
def if_(g: Graph, op: str) -> None:
    """A condition that the run knows, or one that is known before."""
    x = g.pick(NUMBERS)
    y = g.broadcastable(x)
    branches = {}
    for side in ("then_branch", "else_branch"):
        name = g.name("r")
        nodes = (
            _body(g, x.name, x.dtype, y, name) if g.chance(0.8) else [helper.make_node("Identity", [x.name], [name])]
        )
        branches[side] = helper.make_graph(nodes, side, [], [_info(name, x.dtype)])
    g.add(op, _condition(g), captured=[x, y], **branches)


def _condition(g: Graph) -> Value:
    if g.chance(0.2):
        return g.constant(np.asarray(g.chance(0.5)))
    if g.chance(0.3):
        return g.new_input(BOOL, [])
    x = g.pick((F32, I64, I32), lambda v: v.every(lambda a: a.size))
    total = g.add("ReduceMax", x, keepdims=0) if g.opset >= 12 or x.dtype != I64 else g.add("ReduceSum", x, keepdims=0)
    return g.add("Greater", total, g.constant(np.asarray(0, x.dtype)))


@recipe("Loop", since=11, weight=0.5)
def loop(g: Graph, op: str) -> None:
    """A state and a stack of its values; trips known, fed or ended by the condition."""
    x = g.pick(NUMBERS, lambda v: v.every(lambda a: a.size < 300))
    y = g.fitting(x)
    trips = g.constant(np.asarray(g.number(0, 4), I64)) if g.chance(0.7) else g.new_input(I64, [])
    for array in trips.arrays:
        if not 0 <= array <= 9:
            raise Rejected("too many trips")
    if not trips.known:
        trips.arrays = tuple(abs(array) for array in trips.arrays)
    names = {key: g.name("l") for key in ("i", "c", "s", "co", "so", "st", "half")}
    nodes = [helper.make_node("Identity", [names["c"]], [names["co"]]), *_damped(g, names, x, y)]
    stacked = g.chance(0.6)
    if stacked:
        nodes.append(helper.make_node("Identity", [names["so"]], [names["st"]]))
    outputs = [
        _info(names["co"], BOOL, []),
        _info(names["so"], x.dtype),
        *([_info(names["st"], x.dtype)] if stacked else []),
    ]
    weights = [tensor_of(np.asarray(2, x.dtype), names["half"])]
    body = helper.make_graph(
        nodes,
        "body",
        [_info(names["i"], I64, []), _info(names["c"], BOOL, []), _info(names["s"], x.dtype)],
        outputs,
        weights,
    )
    condition = g.constant(np.asarray(True)) if g.chance(0.5) else None
    g.add_all(op, trips, condition, x, captured=[y], outputs=2 if stacked else 1, body=body)


def _damped(g: Graph, names: dict[str, str], x: Value, y: Value) -> list[onnx.NodeProto]:
    """state' = f(state, y) / 2."""
    inner = g.name("b")
    return [*_body(g, names["s"], x.dtype, y, inner), helper.make_node("Div", [inner, names["half"]], [names["so"]])]


@recipe("Scan", since=9, weight=0.5)
def scan(g: Graph, op: str) -> None:
    """One state, one sequence in, one out; either direction."""
    x = g.pick(NUMBERS, lambda v: v.rank > 0 and v.every(lambda a: a.size < 300) and min(s[0] for s in v.shapes) > 0)
    state = g.add("Gather", x, g.constant(np.asarray(0, I64)), axis=0)
    names = {key: g.name("s") for key in ("s", "x", "so", "y", "half")}
    inner = g.name("b")
    nodes = [
        helper.make_node(g.choose(INNER[:3]), [names["s"], names["x"]], [inner]),
        helper.make_node("Div", [inner, names["half"]], [names["so"]]),
        helper.make_node("Neg", [names["so"]], [names["y"]]),
    ]
    body = helper.make_graph(
        nodes,
        "body",
        [_info(names["s"], x.dtype), _info(names["x"], x.dtype)],
        [_info(names["so"], x.dtype), _info(names["y"], x.dtype)],
        [tensor_of(np.asarray(2, x.dtype), names["half"])],
    )
    directions = (
        {"scan_input_directions": [g.number(0, 1)], "scan_output_directions": [g.number(0, 1)]} if g.chance(0.5) else {}
    )
    g.add_all(op, state, x, outputs=2, body=body, num_scan_inputs=1, **directions)
