"""Ops of bodies that may be computed in a cheaper way than their kind, because of where they stand: the parts of a
softmax or a sigmoid, what quantises."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from xdsl.dialects import arith, math
from xdsl.ir import BlockArgument, Operation, SSAValue

from fuseline.analysis.softmax import softmax_facts
from fuseline.analysis.structured import is_generic
from fuseline.dispatch.view import DispatchView
from fuseline.targets.cpu.emit import vector_math as vm
from fuseline.targets.cpu.emit.dtypes import dtype_of
from fuseline.targets.cpu.emit.rounded_integers import rounding_rules
from fuseline.targets.cpu.emit.rounded_quotients import quotient_rules
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import Value

Rule = Callable[..., Any]
"""`(kernel, operands in the order of the op) -> result`."""


def shortcuts(view: DispatchView) -> Mapping[Operation, Rule]:
    """The rules for ops of `view`'s bodies that have one, all of them on f32, or on the way from there to integers."""
    facts = softmax_facts(view.members)
    rules: dict[Operation, Rule] = dict(quotient_rules(view.members))
    whole = rounding_rules(view.members)
    rules.update((op, vm.exp_of_negative) for op in (*facts.exponents, *exponents_of_magnitudes(view.members)))
    rules.update((op, times_reciprocal) for op in facts.quotients)
    rules.update(
        (op, keep_total if _accumulates_first(op) else _keep_total_second)
        for op in facts.maxima
        if isinstance(op, arith.MaximumfOp)
    )
    return {op: rule for op, rule in rules.items() if dtype_of(op.results[0].type) == "f32"} | dict(whole)


def exponents_of_magnitudes(ops: Iterable[Operation]) -> list[math.ExpOp]:
    """Every `exp(-|x|)`: in sigmoid and softplus."""
    inside = (inner for op in ops if is_generic(op) for inner in op.body.block.ops)
    return [inner for inner in inside if isinstance(inner, math.ExpOp) and _is_negated_magnitude(inner.operand)]


def _is_negated_magnitude(value: SSAValue) -> bool:
    negated = value.owner
    return isinstance(negated, arith.NegfOp) and isinstance(negated.operand.owner, math.AbsFOp)


def times_reciprocal(k: KernelBuilder, a: Value, b: Value) -> Value:
    """`a / b` within 1.5 ulp for a `b` whose reciprocal is a normal number, which is computed where `b` is: outside the
    loops that it does not change in."""
    return k.mul(a, k.reciprocal(b)) if b.type.lanes == 1 else k.div(a, b)


def keep_total(k: KernelBuilder, total: Value, element: Value) -> Value:
    """The larger; the total where the element is NaN: what one instruction gives."""
    return k.max(element, total)


def _keep_total_second(k: KernelBuilder, element: Value, total: Value) -> Value:
    return keep_total(k, total, element)


def _accumulates_first(op: Operation) -> bool:
    """Whether the running value is the first operand: body arguments of outputs come last."""
    first, second = op.operands
    assert isinstance(first, BlockArgument) and isinstance(second, BlockArgument)
    return first.index > second.index
