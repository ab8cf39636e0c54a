"""Nodes of which the target has no way to run an op: they expand their function body, or run on the host, as what has
no lowering does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from fuseline.analysis.structured import FREE, Kind, kind
from fuseline.frontends.onnx.program import Mark, Program
from fuseline.frontends.onnx.tensors import NoNativeLowering

_RUNS_NOWHERE = FREE | {Kind.OTHER, Kind.RESHAPE}
"""Kinds that no dispatch is made of by themselves, and calls of the host."""


def require_taken(program: Program, mark: Mark, functions: Iterable[FuncOp]) -> None:
    """Raises NoNativeLowering where the target refuses an op wherever it is (`Target.takes_op`) that was emitted since
    `mark`, or is in one of the `functions` of loops."""
    for op in (*program.since(mark), *_inside(functions)):
        what = kind(op)
        refusal = None if what in _RUNS_NOWHERE else program.ctx.takes_op(op, what)
        if refusal is not None:
            raise NoNativeLowering(f"target-{refusal.code}", refusal.detail)


def _inside(functions: Iterable[FuncOp]) -> Iterator[Operation]:
    for function in functions:
        for block in function.body.blocks:
            yield from block.ops
