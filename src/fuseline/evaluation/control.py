"""Structured control flow, as hand-written IR has it: `scf.if` and `scf.for` on scalars and tensors."""

from __future__ import annotations

import numpy as np
from xdsl.dialects import scf
from xdsl.ir import Operation

from fuseline.evaluation.program import Array, Scope, evaluates, failure


@evaluates("scf.if")
def branch(op: Operation, scope: Scope) -> list[Array]:
    """One of two regions; inside a body, where the condition is an array, both, and then a choice per element."""
    assert isinstance(op, scf.IfOp)
    condition = np.asarray(scope[op.cond])
    if condition.size == 1:
        region = op.true_region if condition.reshape(()) else op.false_region
        return scope.program.run_block(region.block, Scope(scope.program, scope)) if region.blocks else []
    then = scope.program.run_block(op.true_region.block, Scope(scope.program, scope))
    otherwise = scope.program.run_block(op.false_region.block, Scope(scope.program, scope))
    return [np.where(condition, a, b) for a, b in zip(then, otherwise, strict=True)]


@evaluates("scf.for")
def loop(op: Operation, scope: Scope) -> list[Array]:
    """A counted loop with carried values; raises E0305 for a step that is not positive."""
    assert isinstance(op, scf.ForOp)
    low, high, step = (int(scope[value]) for value in (op.lb, op.ub, op.step))
    if step <= 0:
        raise failure(op, f"the step is {step}")
    carried = [scope[value] for value in op.iter_args]
    for i in range(low, high, step):
        inner = Scope(scope.program, scope)
        inner.bind(op.body.block.args, [np.int64(i), *carried])  # pyright: ignore[reportArgumentType]
        carried = scope.program.run_block(op.body.block, inner)
    return carried
