"""A model's graph as plain ONNX with less to do: what is constant is folded, what only moves data is gone or
cheaper."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import NamedTuple

import onnx_ir as ir
from onnx_ir.passes import common

from fuseline.exports.optimized.editor import Editor
from fuseline.exports.optimized.inference import infer
from fuseline.exports.optimized.rewrites import (
    aligned_channels,
    clips,
    constants,
    dilations,
    gathers,
    identities,
    late_gathers,
    pads,
    relayout,
    scales,
    shuffles,
    sums,
    transposes,
)
from fuseline.exports.optimized.summary import Summary

OLDEST = 9
"""The operator set from which on graphs are rewritten."""

ROUNDS = 8
"""How often the rewrites are tried again after one of them did something."""


class Rewrite(NamedTuple):
    """A rewrite and its name."""

    name: str
    apply: Callable[[Editor], bool]


REWRITES = tuple(
    Rewrite(module.NAME, module.apply)
    for module in (
        *(constants, identities, dilations, transposes, relayout, pads, scales, clips, sums),
        *(shuffles, gathers, late_gathers, aligned_channels),
    )
)
"""In the order in which each round runs them."""


def rewrite(model: ir.Model) -> Summary:
    """Rewrite `model` in place; inputs and outputs keep names, types and order. What was done, and what not."""
    summary = Summary(before=_operators(model))
    _prepare(model, summary)
    editor = Editor(model, summary)
    if editor.opset >= OLDEST:
        _rewrite(editor)
    else:
        summary.refuse("all", "", f"operator set {editor.opset} is older than {OLDEST}")
    _clean(model)
    _put_in_order(model.graph)
    summary.after = _operators(model)
    return summary


def _operators(model: ir.Model) -> Counter[str]:
    return Counter(node.op_type for node in model.graph)


def _prepare(model: ir.Model, summary: Summary) -> None:
    """Constants are initializers; an input with an initializer is a constant, as for a compile."""
    defaults = [value for value in model.graph.inputs if value.name in model.graph.initializers]
    model.ir_version = max(model.ir_version or 0, 4)  # before, initializers have to be inputs
    if defaults:
        common.RemoveInitializersFromInputsPass()(model)
        summary.did("default-inputs", len(defaults))
    common.LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0)(model)
    _clean(model)
    infer(model)


@contextmanager
def _quiet() -> Generator[None]:
    """onnx-ir logs each initializer that it does not merge with others."""
    logger = logging.getLogger("onnx_ir")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


def _rewrite(editor: Editor) -> None:
    """Until nothing changes: sizes that rewriting made known may allow for more."""
    for _ in range(ROUNDS):
        changed = [each.name for each in REWRITES if each.apply(editor)]
        if not changed:
            return
        if constants.NAME in changed:
            infer(editor.model)


def _clean(model: ir.Model) -> None:
    """Without nodes that nobody reads. Equal constants stay apart: OpenVINO folds a zero point into the operator behind
    it where that alone reads it."""
    with _quiet():
        common.RemoveUnusedNodesPass()(model)


def _put_in_order(graph: ir.Graph) -> None:
    """Initializers in the order in which nodes read them, so that the same graph is the same file."""
    read = dict.fromkeys(value.name for node in graph.all_nodes() for value in node.inputs if value is not None)
    order = {name: place for place, name in enumerate(read)}
    held = list(graph.initializers.items())
    graph.initializers.clear()
    for name, value in sorted(held, key=lambda item: order.get(item[0], len(order))):
        graph.initializers[name] = value
