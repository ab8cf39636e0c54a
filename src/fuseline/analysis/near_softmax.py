"""Softmaxes with a product behind them that are not met block by block, and what is in the way
(`analysis/online_softmax.py` has those that are)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf

from xdsl.dialects.builtin import f32, f64
from xdsl.ir import Operation, SSAValue

from fuseline.analysis.online_softmax import MAXIMA, exponentials_of, reduced_axis, total_of
from fuseline.analysis.softmax import Reduction, reduction_of
from fuseline.analysis.structured import StructuredOp, is_generic, multiply_add_operands
from fuseline.analysis.weighted_sums import Generic, TensorDim, Weighing, readers_of, weighing_of
from fuseline.ir.build import element_of


@dataclass(frozen=True, slots=True)
class NearOnlineSoftmax:
    """The maximum and the product of a softmax that needs all of its loop at once, and what is missing for less."""

    maximum: Generic
    product: Generic
    missing: str


def near_online_softmaxes(ops: Iterable[Operation]) -> list[NearOnlineSoftmax]:
    """Every softmax that begins with one of `ops`, none of which begins an `OnlineSoftmax`, and that a product sums
    up."""
    found = (_near(op) for op in ops if is_generic(op))
    return [near for near in found if near is not None]


def _near(op: Generic) -> NearOnlineSoftmax | None:
    maximum = reduction_of(op.results[0], MAXIMA)
    if maximum is None or len(StructuredOp(op).reduction) != 1:
        return None
    source = TensorDim(maximum.source, reduced_axis(maximum))
    for reader in _structured_readers(maximum.result):
        exponentials = exponentials_of(reader, maximum, source)
        near = _behind(maximum, exponentials[1]) if exponentials is not None else None
        if near is not None:
            return near
    return None


def _behind(maximum: Reduction, e: TensorDim) -> NearOnlineSoftmax | None:
    total, product = total_of(e), _product_of(e.value)
    if total is None or product is None:
        return None
    return NearOnlineSoftmax(maximum.op, product, _missing(maximum, e, total, product))


def _structured_readers(value: SSAValue) -> list[Generic]:
    return list(dict.fromkeys(use.operation for use in value.uses if is_generic(use.operation)))


def _product_of(weights: SSAValue) -> Generic | None:
    """The first contraction that reads what all-parallel ops make of `weights`."""
    values = [weights]
    for value in values:  # which grows meanwhile
        for op in _structured_readers(value):
            if not StructuredOp(op).reduction:
                values += [result for result in op.results if result not in values]
            elif multiply_add_operands(op) is not None:
                return op
    return None


def _missing(maximum: Reduction, e: TensorDim, total: Reduction, product: Generic) -> str:
    if maximum.start() != -inf:
        return "the maximum does not start from minus infinity"
    if element_of(maximum.result) not in (f32, f64):
        return f"its elements are {element_of(maximum.result)}"
    if len(readers_of(maximum.result)) != 1:
        return "something else reads the maximum"
    return _missing_behind(e, total, product)


def _missing_behind(e: TensorDim, total: Reduction, product: Generic) -> str:
    """What is in the way between the exponentials and the product."""
    weights, dim = list[Weighing](), e
    while True:
        readers = readers_of(dim.value)
        others = [op for op in readers if op is not total.op]
        if not readers:
            return "something needs the weights as a whole"
        if others == [product]:
            sides = multiply_add_operands(product)
            if sides is not None and sides[0] == sides[1]:
                return "the product is of the weights with themselves: it grows with the square of their total"
            return "the product does not begin at 0, or sums over other loops beside it"
        weighing = weighing_of(others, dim, total, weights)
        if weighing is None:
            return "several ops read the weights" if len(others) > 1 else "what is done to the weights is no factor"
        weights.append(weighing)
        dim = TensorDim(weighing.op.results[0], dim.axis)
