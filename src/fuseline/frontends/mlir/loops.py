"""Loops with a number of iterations that the text says: each iteration is written out, its counter a constant.

    %r = scf.for %i = 0 to 3 step 2 iter_args(%s = %a) { .. scf.yield %n }     =>     body(0, a), body(2, ..)

What is written out, the compiler fuses like any other ops.
"""

from __future__ import annotations

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from fuseline.frontends.mlir.control import flatten_branches
from fuseline.frontends.mlir.wrappers import unsupported
from fuseline.ir.build import Emitter
from fuseline.ir.fast.direct import ops_of
from fuseline.ir.fast.nesting import ops_inside
from fuseline.ir.provenance import carry
from fuseline.ir.rounds import rounds

MOST_OPS = 20_000
"""Ops that loops may become: what is longer takes longer to compile than to write as a tensor op."""


def straighten(main: func.FuncOp) -> None:
    """Leave neither loops nor branches of `scf` in `main`. Raises FuselineError: E0306 for those that need be."""
    for _ in rounds("branches in loops", most=len(ops_inside(main)) + 1):
        _write_out_loops(main)
        flatten_branches(main)
        if not any(isinstance(op, scf.ForOp) for op in ops_of(main.body.block)):
            return


def _write_out_loops(main: func.FuncOp) -> None:
    """Write out the loops of `main`, outer ones first."""
    written = 0
    for _ in rounds("writing out loops", most=MOST_OPS + len(ops_inside(main))):
        loop = next((op for op in ops_of(main.body.block) if isinstance(op, scf.ForOp)), None)
        if loop is None:
            return
        counts = _counts(loop)
        count = max(0, -(-(counts.stop - counts.start) // counts.step))
        written += count * len(ops_inside(loop))
        if written > MOST_OPS:
            raise unsupported(
                loop, f"{count} iterations are too many to write out", "write it as a reduction, a scan or a generic"
            )
        _write_out(loop, counts)


def _counts(loop: scf.ForOp) -> range:
    start, end, step = (_number(loop, value) for value in (loop.lb, loop.ub, loop.step))
    if step <= 0:
        raise unsupported(loop, f"counts in steps of {step}")
    return range(start, end, step)


def _number(loop: scf.ForOp, value: SSAValue) -> int:
    maker = value.owner
    if isinstance(maker, arith.ConstantOp) and isinstance(maker.value, IntegerAttr):
        return maker.value.value.data
    raise unsupported(loop, "how often it runs is computed", "write it as a reduction, a scan or a generic")


def _write_out(loop: scf.ForOp, counts: range) -> None:
    emit, body = Emitter.before(loop), loop.body.block
    assert loop.parent is not None
    states: list[SSAValue] = list(loop.iter_args)
    for count in counts:
        counter = emit.scalar(count, body.args[0].type)
        values: dict[SSAValue, SSAValue] = dict(zip(body.args, [counter, *states], strict=True))
        for op in ops_of(body):
            if isinstance(op, scf.YieldOp):
                states = [values.get(value, value) for value in op.operands]
                break
            copy = op.clone(values)
            carry([loop, op], [copy])
            loop.parent.insert_op_before(copy, loop)
    Rewriter.replace_op(loop, [], states)
