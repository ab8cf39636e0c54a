"""Conditions that only compare sizes: which sizes an `If` over them asks for, either way.

Shape(x) -> Gather(-1) -> Equal(1) -> If        true: x.dims[-1] must be 1
        false: it must be any other
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import onnx_ir as ir

from fuseline.frontends.onnx.host_values import Value
from fuseline.frontends.onnx.tensors import Tensor
from fuseline.ir.dim import Dim, Expr, add
from fuseline.size_requirement import SizeRequirement

_UNCHANGED = ("Cast", "Identity", "Squeeze", "Unsqueeze", "Reshape")
"""Operators that hand a condition on."""


class SizeTest(NamedTuple):
    """What sizes must be for a condition to hold, and for it not to."""

    holds: SizeRequirement
    fails: SizeRequirement


def _at_least(left: Dim, right: Dim, label: str) -> SizeRequirement:
    return SizeRequirement(left, right, label, relation="at_least")


def _differ(left: Dim, right: Dim, label: str) -> SizeRequirement:
    return SizeRequirement(left, right, label, relation="differ")


_COMPARISONS: dict[str, Callable[[Dim, Dim, str], SizeTest]] = {
    "Equal": lambda x, y, label: SizeTest(SizeRequirement(x, y, label), _differ(x, y, label)),
    "Greater": lambda x, y, label: SizeTest(_at_least(x, add(y, 1), label), _at_least(y, x, label)),
    "GreaterOrEqual": lambda x, y, label: SizeTest(_at_least(x, y, label), _at_least(y, add(x, 1), label)),
    "Less": lambda x, y, label: SizeTest(_at_least(y, add(x, 1), label), _at_least(x, y, label)),
    "LessOrEqual": lambda x, y, label: SizeTest(_at_least(y, x, label), _at_least(x, add(y, 1), label)),
}


def size_test(condition: ir.Value | None, scope: Mapping[str, Value], label: str) -> SizeTest | None:
    """The test that `condition` is; None where it is no comparison of two single sizes. `label` is whom its
    requirements name."""
    maker = condition.producer() if condition is not None else None
    if maker is None or maker.domain not in ("", "ai.onnx"):
        return None
    if maker.op_type in _UNCHANGED:
        return size_test(maker.inputs[0], scope, label)
    if maker.op_type == "Not":
        inner = size_test(maker.inputs[0], scope, label)
        return None if inner is None else SizeTest(inner.fails, inner.holds)
    comparison = _COMPARISONS.get(maker.op_type)
    sizes = [_size(value, scope) for value in maker.inputs] if comparison is not None else []
    if comparison is None or len(sizes) != 2 or sizes[0] is None or sizes[1] is None:
        return None
    return comparison(sizes[0], sizes[1], label)


def _size(value: ir.Value | None, scope: Mapping[str, Value]) -> Dim | None:
    found = scope.get(str(value.name)) if value is not None else None
    if not isinstance(found, Tensor) or found.array is None or found.array.size != 1:
        return None
    item = found.array.reshape(-1)[0]
    if isinstance(item, Expr):
        return item
    return int(item) if found.dtype.kind in "iu" else None
