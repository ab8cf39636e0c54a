"""Structured ops (`linalg.generic` and all named ops with loops): views of the operands, the body once on whole arrays.

An output whose body is `combine(accumulator, term)` with a term free of accumulators is reduced as a whole (a product
under a sum through `contraction`); anything else runs the reduction loops in Python, vectorised over the parallel ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects import linalg
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.dialects.linalg.attrs import IteratorType
from xdsl.ir import Block, Operation, OpResult, SSAValue
from xdsl.ir.affine import AffineMap

from fuseline.evaluation.access import linear
from fuseline.evaluation.contraction import sum_of_products
from fuseline.evaluation.nest import Nest, needed_ops, nest_of
from fuseline.evaluation.numbers import as_type, signed, unsigned
from fuseline.evaluation.program import Array, Scope, evaluates, failure, run_op
from fuseline.ir.linalg_named import Linalg

_KEEP = np.asarray

COMBINERS: dict[str, tuple[np.ufunc, Any]] = {
    "arith.addf": (np.add, _KEEP),
    "arith.addi": (np.add, unsigned),
    "arith.mulf": (np.multiply, _KEEP),
    "arith.muli": (np.multiply, unsigned),
    "arith.maximumf": (np.maximum, _KEEP),
    "arith.minimumf": (np.minimum, _KEEP),
    "arith.maxnumf": (np.fmax, _KEEP),
    "arith.minnumf": (np.fmin, _KEEP),
    "arith.maxsi": (np.maximum, signed),
    "arith.minsi": (np.minimum, signed),
    "arith.maxui": (np.maximum, unsigned),
    "arith.minui": (np.minimum, unsigned),
    "arith.andi": (np.bitwise_and, unsigned),
    "arith.ori": (np.bitwise_or, unsigned),
    "arith.xori": (np.bitwise_xor, unsigned),
}
"""Ops that may end a reduction's body: the function, and how its operands are viewed."""

_SUMS = {"arith.addf": "arith.mulf", "arith.addi": "arith.muli"}


def structured(op: Operation, scope: Scope) -> list[Array]:
    """Evaluate any op with indexing maps, iterator types and a body; raises E0305 where the maps do not fit the
    operands."""
    assert isinstance(op, LinalgStructuredOperation)
    maps = [attribute.data for attribute in op.get_indexing_maps()]
    kinds = [attribute.data for attribute in op.get_iterator_types()]
    return evaluate_loops(op, op.body.block, (maps, kinds), [*op.inputs, *op.outputs], len(op.outputs), scope)


def evaluate_loops(
    op: Operation,
    block: Block,
    loops: tuple[list[AffineMap], Sequence[IteratorType]],
    operands: Sequence[SSAValue],
    outputs: int,
    scope: Scope,
) -> list[Array]:
    """The results of an op that is given in parts, `loops` its maps and iterators; raises E0305 where the maps do not
    fit the operands."""
    try:
        return evaluate_nest(nest_of(op, block, *loops, operands, outputs, scope))
    except ValueError as error:
        raise failure(op, str(error)) from error


def evaluate_nest(nest: Nest) -> list[Array]:
    """The results of a nest: what they start from where there is no point, and nothing is read then, wherever it
    lies."""
    if 0 in nest.sizes:
        return list(nest.outputs)
    return _parallel(nest) if not nest.reductions else _reduced(nest)


def _run(nest: Nest, values: Sequence[SSAValue]) -> list[Array]:
    for op in needed_ops(nest.block, values):
        if op.results[0] not in nest.scope.values:
            run_op(op, nest.scope)
    return [nest.full_rank(nest.scope[value]) for value in values]


def _parallel(nest: Nest) -> list[Array]:
    for k, accumulator in enumerate(nest.accumulators):
        if accumulator.uses:
            nest.scope.bind([accumulator], [nest.output_view(k)])
    return [nest.stored(k, value) for k, value in enumerate(_run(nest, nest.yielded))]


@dataclass(frozen=True)
class Reduction:
    """`combine(accumulator, term)`: how one output's body ends."""

    combine: Operation
    term: SSAValue


def separated(nest: Nest, k: int) -> Reduction | None:
    """Output k's body as a combination of its accumulator with a term that no accumulator reaches; None where it is no
    such thing."""
    value = nest.yielded[k]
    if not isinstance(value, OpResult) or value.op.name not in COMBINERS or value.op.parent is not nest.block:
        return None
    combine, accumulator = value.op, nest.accumulators[k]
    if accumulator not in combine.operands:
        return None
    term = combine.operands[1] if combine.operands[0] is accumulator else combine.operands[0]
    reached = {
        operand for op in needed_ops(nest.block, [term]) for nested in op.walk() for operand in nested.operands
    } | {term}
    return None if any(other in reached for other in nest.accumulators) else Reduction(combine, term)


def _reduced(nest: Nest) -> list[Array]:
    """The results of a nest with reductions. One that a result names with all of its reduction loops is no reduction
    for that result."""
    whole = [k for k in range(len(nest.outputs)) if _names_reductions(nest, k)]
    rest = [k for k in range(len(nest.outputs)) if k not in whole]
    results = {
        k: nest.stored(k, value) for k, value in zip(whole, _run(nest, [nest.yielded[k] for k in whole]), strict=True)
    }
    reductions = [(k, separated(nest, k)) for k in rest]
    if any(reduction is None for _, reduction in reductions):
        results |= _sequential(nest, rest)
    else:
        results |= {k: _combined(nest, k, reduction) for k, reduction in reductions if reduction is not None}
    return [results[k] for k in range(len(nest.outputs))]


def _names_reductions(nest: Nest, k: int) -> bool:
    """Whether each iteration writes an element of output k of its own, of nothing that was there before; raises
    ValueError for a mixture."""
    map_ = nest.maps[len(nest.maps) - len(nest.outputs) + k]
    forms = [linear(expression, nest.rank) for expression in map_.results]
    named = {d for form in forms for d in nest.reductions if form is None or form.coefficients[d]}
    if not named:
        return False
    reached = {
        operand
        for op in needed_ops(nest.block, [nest.yielded[k]])
        for nested in op.walk()
        for operand in nested.operands
    } | {nest.yielded[k]}
    if (
        named != set(nest.reductions)
        or None in forms
        or any(accumulator in reached for accumulator in nest.accumulators)
    ):
        raise ValueError("an output is indexed by a reduction loop")
    return True


def _combined(nest: Nest, k: int, reduction: Reduction) -> Array:
    if any(nest.sizes[d] == 0 for d in nest.reductions):
        return nest.outputs[k]
    dtype = nest.scope.program.dtype(reduction.combine.results[0].type)
    function, view = COMBINERS[reduction.combine.name]
    total = _sum_of_products(nest, reduction) if _is_product(reduction) else _folded(nest, reduction, function, view)
    return nest.stored(
        k, as_type(function(view(nest.output_view(k)), total if total.dtype != dtype else view(total)), dtype)
    )


def _is_product(reduction: Reduction) -> bool:
    term = reduction.term
    if not isinstance(term, OpResult) or term.op.name != _SUMS.get(reduction.combine.name):
        return False
    return term.op.parent is reduction.combine.parent


def _sum_of_products(nest: Nest, reduction: Reduction) -> Array:
    assert isinstance(reduction.term, OpResult)
    a, b = _run(nest, list(reduction.term.op.operands))
    if a.dtype.kind == "b":
        return _folded(nest, reduction, np.bitwise_xor, unsigned)
    total = sum_of_products(a, b, nest.sizes, nest.reductions)
    return unsigned(total) if total.dtype.kind == "i" else total


def _folded(nest: Nest, reduction: Reduction, function: np.ufunc, view: Any) -> Array:
    """The term over all loops, reduced along the reduction loops (extent 1 is kept)."""
    (term,) = _run(nest, [reduction.term])
    term = view(term)
    if function not in (np.maximum, np.minimum, np.fmax, np.fmin, np.bitwise_and, np.bitwise_or):
        term = np.broadcast_to(
            term, [nest.sizes[d] if d in nest.reductions else term.shape[d] for d in range(nest.rank)]
        )
    wide = np.dtype(np.float32) if term.dtype.itemsize < 4 and term.dtype.kind not in "biu" else term.dtype
    if function in (np.add, np.multiply):
        return function.reduce(term, axis=tuple(nest.reductions), keepdims=True, dtype=wide).astype(term.dtype)
    return function.reduce(term, axis=tuple(nest.reductions), keepdims=True)


def _sequential(nest: Nest, which: Sequence[int]) -> dict[int, Array]:
    """Outputs `which`, the reduction loops one step at a time, in order, for bodies that do not separate (an arg-max
    with two outputs)."""
    extents = [1 if d in nest.reductions else size for d, size in enumerate(nest.sizes)]
    state: list[Array] = [np.broadcast_to(nest.output_view(k), extents) for k in which]
    yielded = [nest.yielded[k] for k in which]
    inputs = [(value, nest.scope[value]) for value in nest.block.args[: len(nest.maps) - len(nest.outputs)]]
    ops = needed_ops(nest.block, yielded)
    for where in np.ndindex(*(nest.sizes[d] for d in nest.reductions)):
        step = Scope(nest.scope.program, nest.scope, [_at(nest, index, where) for index in nest.scope.indices])
        step.bind([value for value, _ in inputs], [_at(nest, array, where) for _, array in inputs])
        step.bind([nest.accumulators[k] for k in which], state)
        for op in ops:
            run_op(op, step)
        state = [nest.full_rank(step[value]) for value in yielded]
    return {k: nest.stored(k, value) for k, value in zip(which, state, strict=True)}


def _at(nest: Nest, array: Array, where: Sequence[int]) -> Array:
    index: list[Any] = [slice(None)] * nest.rank
    for d, i in zip(nest.reductions, where, strict=True):
        index[d] = slice(i, i + 1) if array.shape[d] != 1 else slice(None)
    return array[tuple(index)]


@evaluates("linalg.index")
def index(op: Operation, scope: Scope) -> list[Array]:
    """`linalg.index d`: the coordinate along loop d."""
    assert isinstance(op, linalg.ops.IndexOp)
    inner = scope
    while not inner.indices and inner.parent is not None:
        inner = inner.parent
    return [inner.indices[op.dim.value.data]]


_SPECIAL = {"linalg.fill", "linalg.transpose"}

for _op in Linalg.operations:
    if issubclass(_op, LinalgStructuredOperation) and _op.name not in _SPECIAL:
        evaluates(_op.name)(structured)
