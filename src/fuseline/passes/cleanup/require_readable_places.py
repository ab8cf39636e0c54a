"""Pass `require-readable-places`: reads at computed places stay inside what they read, whatever sizes are fed.

A `tensor.extract` in the body of a structured op names its place by arithmetic on loop counters, sizes and data. Where sizes tell between which
places it lies, and it does not follow from the symbols alone that both are inside the tensor, that becomes a requirement of the program, and feeds
that break it are refused (E0203) before anything is read. Lowerings bring what depends on data into such a range with `min` and `max`. Only ranges of
which both ends are met count, or sizes would be refused with which all is well: what is chosen between, or varies with two things, is left to the
lowering.

    x[clamp(i, 0, n - 1)]  for m counters       requires n >= 1 where m is not 0
    x[b, ..]               for b in 0..m        requires size of x >= m
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects import arith, linalg, tensor
from xdsl.dialects.builtin import IndexType, IntegerAttr, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue
from xdsl.passes import ModulePass

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import StructuredOp
from fuseline.ir import dim as d
from fuseline.ir.context import CompilerContext
from fuseline.ir.dim import Dim
from fuseline.passes.cleanup.inside_requirements import require_inside

Range = tuple[Dim | None, Dim | None]
"""The least and the greatest value, both met; None where sizes do not tell."""

UNKNOWN: Range = (None, None)


@dataclass(frozen=True)
class RequireReadablePlacesPass(ModulePass):
    """Notes in the context what sizes must be for every read at a computed place to lie inside.

    Raises FuselineError: E0107 for one that never does.
    """

    name = "require-readable-places"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Look at every body; nothing changes."""
        if not isinstance(ctx, CompilerContext):
            return
        shapes = ShapeAnalysis(ctx.symbols)
        for function in op.body.block.ops:
            for inner in function.walk() if isinstance(function, FuncOp) else ():
                if isinstance(inner, tensor.ExtractOp) and isinstance(generic := inner.parent_op(), linalg.ops.GenericOp):
                    _check(ctx, shapes, generic, inner)


def _check(ctx: CompilerContext, shapes: ShapeAnalysis, generic: linalg.ops.GenericOp, read: tensor.ExtractOp) -> None:
    loops = StructuredOp(generic).loops(shapes)
    ranges = _Ranges(shapes, generic, loops)
    for place, size in zip(read.indices, shapes.dims(read.tensor), strict=True):
        require_inside(ctx, generic, ranges.of(place), size, loops)


@dataclass
class _Ranges:
    """Ranges of the integers in the body of `generic`, whose loops run up to `loops`."""

    shapes: ShapeAnalysis
    generic: linalg.ops.GenericOp
    loops: tuple[Dim, ...] | list[Dim]
    _known: dict[SSAValue, Range] = field(default_factory=dict[SSAValue, Range])

    def of(self, value: SSAValue) -> Range:
        """The range of an integer or an index."""
        found = self._known.get(value)
        if found is None:
            found = self._known[value] = self._compute(value)
        return found

    def _compute(self, value: SSAValue) -> Range:
        if isinstance(value, BlockArgument) and isinstance(value.owner.parent_op(), FuncOp) and isinstance(value.type, IndexType):
            size = self.shapes.index(value)
            return size, size
        if not isinstance(value, OpResult):
            return UNKNOWN
        op = value.op
        if isinstance(op, linalg.ops.IndexOp):
            return 0, d.sub(self.loops[op.dim.value.data], 1)
        if isinstance(op, arith.ConstantOp):
            return (op.value.value.data, op.value.value.data) if isinstance(op.value, IntegerAttr) else UNKNOWN
        if isinstance(op, arith.IndexCastOp):
            return self.of(op.input)
        if isinstance(op, tensor.DimOp) or (op.parent_op() is not self.generic and op.name in _OUTSIDE):
            size = self.shapes.index(value)
            return size, size
        rule = _RULES.get(type(op))
        return UNKNOWN if rule is None else rule(*(self.of(operand) for operand in op.operands))


_OUTSIDE = frozenset({"arith.addi", "arith.subi", "arith.muli", "arith.floordivsi", "arith.divsi", "arith.maxsi", "arith.minsi"})
"""What sizes are computed with outside of bodies."""


def _is_one(a: Range) -> bool:
    return a[0] is not None and a[0] == a[1]


def _plus(a: Range, b: Range) -> Range:
    """Of two that vary, nothing is known: they may vary together."""
    if not (_is_one(a) or _is_one(b)):
        return UNKNOWN
    low, high = (None if x is None or y is None else d.add(x, y) for x, y in zip(a, b, strict=True))
    return low, high


def _negative(a: Range) -> Range:
    high, low = (None if end is None else d.mul(end, -1) for end in a)
    return low, high


def _times(a: Range, b: Range) -> Range:
    """A product with a number; of anything else nothing is known."""
    if not isinstance(b[0], int) or not _is_one(b):
        a, b = b, a
    if not isinstance(b[0], int) or not _is_one(b):
        return UNKNOWN
    factor = abs(b[0])
    low, high = (None if end is None else d.mul(end, factor) for end in a)
    return (low, high) if b[0] >= 0 else _negative((low, high))


def _at_most(a: Range, b: Range) -> Range:
    """The smaller of a place, or of data, which can be anything, and a size."""
    if not (_is_one(a) or _is_one(b)):
        return UNKNOWN
    highs = [end for end in (a[1], b[1]) if end is not None]
    low = None if a[0] is None or b[0] is None else d.minimum(a[0], b[0])
    return low, d.minimum(highs[0], highs[-1]) if highs else None


def _at_least(a: Range, b: Range) -> Range:
    return _negative(_at_most(_negative(a), _negative(b)))


_RULES: dict[type[Operation], Callable[[Range, Range], Range]] = {
    arith.AddiOp: _plus,
    arith.SubiOp: lambda a, b: _plus(a, _negative(b)),
    arith.MuliOp: _times,
    arith.MinSIOp: _at_most,
    arith.MaxSIOp: _at_least,
}


EXPORT = RequireReadablePlacesPass
