"""Programs under a rewriting: their scope, and whether they still compute the same."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from contextlib import contextmanager

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, TensorType, f32
from xdsl.ir import SSAValue

from fuseline.evaluation import evaluate_function
from fuseline.ir.context import new_context
from fuseline.ir.dim import symbol
from fuseline.passes.layout.rewriting.permutation import transpose
from fuseline.passes.layout.rewriting.scope import Scope
from tests.equivalence import TOLERANCE, random_arguments
from tests.graphs.program import Program


def scope_of(p: Program) -> Scope:
    """The body of `main` with its sizes."""
    ctx = new_context()
    ctx.symbols |= {name: symbol(name) for name in p.names}
    return Scope(p.function, ctx)


def transposed(p: Program, x: SSAValue, *permutation: int) -> SSAValue:
    """`x` with its dimensions in another order, as `linalg.transpose`."""
    return transpose(scope_of(p), p.emit, x, permutation)


def constant(p: Program, *shape: int) -> SSAValue:
    """A constant of numbers that are all different."""
    numbers = [0.25 * i - 1.0 for i in range(math.prod(shape))]
    return p.emit.add(arith.ConstantOp(DenseIntOrFPElementsAttr.from_list(TensorType(f32, shape), numbers))).result


@contextmanager
def same_results(p: Program, seed: int = 7) -> Generator[Scope]:
    """The scope for a rewriting of `main`, after which it must verify and compute what it did."""
    arguments = random_arguments(p.function, seed)
    before = evaluate_function(p.function, arguments, {})
    scope = scope_of(p)
    yield scope
    p.module.verify()
    for one, two in zip(evaluate_function(p.function, arguments, {}), before, strict=True):
        np.testing.assert_allclose(one, two, rtol=0, atol=TOLERANCE * (abs(two).max() + 1e-30))


def refuses(p: Program, rewrite: Callable[[Scope], object]) -> bool:
    """Whether `rewrite` answers no (False or None) and leaves every op of `main` as it was."""
    before = [(op.name, tuple(op.operands)) for op in p.function.walk()]
    answer = rewrite(scope_of(p))
    return not answer and before == [(op.name, tuple(op.operands)) for op in p.function.walk()]


def count(p: Program, kind: type[object]) -> int:
    """How many ops of a kind there are."""
    return sum(isinstance(op, kind) for op in p.function.walk())
