"""What a function is called: what its root does, the operators in it, and its first dispatch, as in
`contraction_Gemm_Relu_003`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import onnx

from fuseline.report.records import DispatchRecord

_UNSAFE = re.compile(r"[^A-Za-z0-9_]")
_NUMBER = re.compile(r"^\d+_")
_MOST_OPERATORS = 4
"""More kinds of operators than this make a name too long for a box."""

_MOST_LABELS = 3

_SILENT = frozenset(("Constant", "QuantizeLinear", "DequantizeLinear", "Identity", "Cast"))
"""Operators that say little of what a function does, where it has others."""


def function_name(dispatches: Sequence[DispatchRecord], numbers: Sequence[int], nodes: Sequence[onnx.NodeProto]) -> str:
    """The name of a function of some dispatches (with their numbers) and nodes; no two functions have one."""
    root = max(dispatches, key=lambda dispatch: dispatch.flops)
    operators = _operators([node for node in nodes if node.op_type not in _SILENT] or nodes)
    return _UNSAFE.sub("_", "_".join([what_it_does(root), *operators, f"{numbers[0]:03d}"]))


def call_name(dispatches: Sequence[DispatchRecord]) -> str:
    """What the call of a function of some dispatches is called: as they are, or from the first to the last of many."""
    labels = [dispatch.label for dispatch in dispatches]
    return "+".join(labels) if len(labels) <= _MOST_LABELS else f"{labels[0]}..{labels[-1]}"


def _operators(nodes: Sequence[onnx.NodeProto]) -> list[str]:
    counts = Counter(node.op_type for node in nodes)
    words = [name if count == 1 else f"{name}x{count}" for name, count in counts.items()]
    return words if len(words) <= _MOST_OPERATORS else [*words[:_MOST_OPERATORS], "etc"]


def what_it_does(dispatch: DispatchRecord) -> str:
    """The name of a dispatch without its number."""
    return _NUMBER.sub("", dispatch.name)
