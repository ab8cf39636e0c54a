"""Elementwise bodies of the form `x * scale + shift` with constants for scale and shift."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import arith, linalg
from xdsl.dialects.builtin import FloatAttr
from xdsl.ir import Operation, SSAValue

from fuseline.ir.fast.direct import body_of, operand_of, operands_of, ops_of, result_of, users_of_value

Array: TypeAlias = NDArray[Any]
Affine: TypeAlias = tuple[Array, Array]
"""Scale and shift, arrays in float64 that broadcast over the op's space."""

_ZERO, _ONE = np.zeros(()), np.ones(())


def affine_body(op: linalg.ops.GenericOp, variables: Sequence[int], constants: dict[int, Array]) -> Affine | None:
    """What the body of `op` makes of one tensor that is its inputs `variables`; None where that is no scale and shift.

    The other inputs are `constants`, by position, broadcast over the loops.
    """
    block = body_of(op)
    known: dict[SSAValue, Affine] = {block.args[i]: (_ZERO, array) for i, array in constants.items()}
    known.update((block.args[variable], (_ONE, _ZERO)) for variable in variables)
    for inner in ops_of(block):
        if type(inner) is linalg.ops.YieldOp:
            return _operand(known, operand_of(inner, 0))
        forms = [_operand(known, operand) for operand in operands_of(inner)]
        rule = _RULES.get(type(inner))
        made = rule(*forms) if rule is not None and None not in forms else _constant(inner)
        if made is None:
            return None
        known[result_of(inner)] = made
    return None


def can_be_affine(op: linalg.ops.GenericOp) -> bool:
    """Whether all that the body computes is of the kinds that scale and shift."""
    return all([type(inner) in _AFFINE for inner in ops_of(body_of(op))])


def only_shifts(op: linalg.ops.GenericOp) -> bool:
    """Whether the body adds different things only, so that what it makes of any of its inputs is that input,
    shifted."""
    block = body_of(op)
    adds = all([type(inner) in _SHIFTING for inner in ops_of(block)])
    return adds and all([len(users_of_value(argument)) <= 1 for argument in block.args])


def _operand(known: dict[SSAValue, Affine], value: SSAValue) -> Affine | None:
    found = known.get(value)
    if found is None and isinstance(value.owner, Operation):
        return _constant(value.owner)
    return found


def _constant(op: Operation) -> Affine | None:
    if type(op) is arith.ConstantOp and isinstance(op.value, FloatAttr):
        return _ZERO, np.float64(op.value.value.data) + _ZERO
    return None


def _is_constant(form: Affine) -> bool:
    return form[0] is _ZERO


def _add(a: Affine, b: Affine) -> Affine | None:
    return _scales(a, b, np.add), a[1] + b[1]


def _subtract(a: Affine, b: Affine) -> Affine | None:
    return _scales(a, b, np.subtract), a[1] - b[1]


def _scales(a: Affine, b: Affine, combine: Callable[[Array, Array], Array]) -> Array:
    return _ZERO if _is_constant(a) and _is_constant(b) else np.asarray(combine(a[0], b[0]))


def _multiply(a: Affine, b: Affine) -> Affine | None:
    if not _is_constant(b):
        a, b = b, a
    if not _is_constant(b):
        return None
    return (_ZERO if _is_constant(a) else a[0] * b[1]), a[1] * b[1]


def _divide(a: Affine, b: Affine) -> Affine | None:
    if not _is_constant(b) or not np.all(b[1]):
        return None
    return (_ZERO if _is_constant(a) else a[0] / b[1]), a[1] / b[1]


def _negate(a: Affine) -> Affine | None:
    return (_ZERO if _is_constant(a) else -a[0]), -a[1]


_RULES: dict[type[Operation], Callable[..., Affine | None]] = {
    arith.AddfOp: _add,
    arith.SubfOp: _subtract,
    arith.MulfOp: _multiply,
    arith.DivfOp: _divide,
    arith.NegfOp: _negate,
}
_SHIFTING = frozenset((arith.AddfOp, arith.ConstantOp, linalg.ops.YieldOp))
_AFFINE = _SHIFTING.union(_RULES)
