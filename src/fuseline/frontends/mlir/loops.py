"""Loops with a number of iterations that the text says: each iteration is written out, its counter a constant. Others
are repeated by the host (`repeats.py`).

    %r = scf.for %i = 0 to 3 step 2 iter_args(%s = %a) { .. scf.yield %n }     =>     body(0, a), body(2, ..)

What is written out, the compiler fuses like any other ops.
"""

from __future__ import annotations

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from fuseline.frontends.mlir.control import LOOPS, flatten_branches, straight_blocks
from fuseline.frontends.mlir.repeats import repeat_on_host
from fuseline.frontends.mlir.wrappers import unsupported
from fuseline.ir.build import Emitter
from fuseline.ir.context import CompilerContext
from fuseline.ir.fast.direct import ops_of
from fuseline.ir.fast.nesting import ops_inside
from fuseline.ir.provenance import carry
from fuseline.ir.rounds import rounds

MOST_TRIPS = 1 << 40
"""Iterations of a loop that the host repeats: more end in no lifetime (a microsecond each: 13 days)."""

MOST_OPS = 20_000
"""Ops that loops may become: what is longer takes longer to compile than to write as a tensor op."""


def straighten(module: ModuleOp, main: func.FuncOp, ctx: CompilerContext) -> None:
    """Leave neither loops nor branches of `scf` in `main`, nor in the bodies of its ops. Raises FuselineError: E0306
    for those that need be."""
    for _ in rounds("branches in loops", most=len(ops_inside(main)) + 1):
        _write_out_loops(module, main, ctx)
        flatten_branches(main)
        if _first_loop(main) is None:
            return


def _first_loop(main: func.FuncOp) -> scf.ForOp | scf.WhileOp | None:
    return next((op for block in straight_blocks(main) for op in ops_of(block) if isinstance(op, LOOPS)), None)


def _write_out_loops(module: ModuleOp, main: func.FuncOp, ctx: CompilerContext) -> None:
    """Write out the loops of `main`, outer ones first; those that cannot be are the host's."""
    written = 0
    for _ in rounds("writing out loops", most=MOST_OPS + len(ops_inside(main))):
        loop = _first_loop(main)
        if loop is None:
            return
        counts = _counts(loop)
        if loop.parent is not main.body.block and (counts is None or _trips(counts) * len(ops_inside(loop)) > MOST_OPS):
            raise unsupported(loop, "the body of an op has a loop that cannot be written out")
        if counts is None:
            repeat_on_host(module, loop, ctx, "how often it runs is computed")
            continue
        assert isinstance(loop, scf.ForOp)
        trips = _trips(counts)
        if trips > MOST_TRIPS:
            raise unsupported(loop, f"{trips} iterations are too many")
        ops = trips * len(ops_inside(loop))
        if written + ops > MOST_OPS:
            repeat_on_host(module, loop, ctx, f"{trips} iterations are too many to write out")
            continue
        written += ops
        _write_out(loop, counts)


def _counts(loop: scf.ForOp | scf.WhileOp) -> range | None:
    """The counter's numbers; None where only the run knows them."""
    if isinstance(loop, scf.WhileOp):
        return None
    start, end, step = (_number(value) for value in (loop.lb, loop.ub, loop.step))
    if step is not None and step <= 0:
        raise unsupported(loop, f"counts in steps of {step}")
    return range(start, end, step) if start is not None and end is not None and step is not None else None


def _trips(counts: range) -> int:
    """How many there are; `len` takes no more than an address."""
    return max(0, -((counts.start - counts.stop) // counts.step))


def _number(value: SSAValue) -> int | None:
    maker = value.owner
    if isinstance(maker, arith.ConstantOp) and isinstance(maker.value, IntegerAttr):
        return maker.value.value.data
    return None


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
