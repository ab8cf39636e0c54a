"""Pass `clamp-unproven-positions`: a place that is read is the nearest one that there is, where nothing says that it is
inside.

What a `tensor.extract` in a body reads may depend on data, and no size tells where that lies. Such a place is brought
inside, so that nothing is read beside a tensor whatever the program is fed. Places that sizes keep inside stay as they
are, and so do those that are met at both ends of what is known of them: they are required to be inside
(`require-readable-positions`), as a program that leaves its tensor is wrong.

    x[p]    for data p              =>    x[max(min(p, n - 1), 0)]
    x[q]    for q that is never < 0 =>    x[min(q, n - 1)]
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, linalg, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from fuseline.analysis.scalar_ranges import ScalarRanges
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import StructuredOp
from fuseline.ir import dim as d
from fuseline.ir.build import Emitter, shape_of
from fuseline.ir.context import CompilerContext
from fuseline.ir.dim import Dim
from fuseline.ir.dim_order import never_less
from fuseline.ir.fast.direct import set_operand
from fuseline.ir.fast.nesting import ops_inside


@dataclass(frozen=True)
class ClampUnprovenPositionsPass(ModulePass):
    """Has no options."""

    name = "clamp-unproven-positions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Look at every read in a body."""
        assert isinstance(ctx, CompilerContext)
        for function in op.body.block.ops:
            for inner in ops_inside(function) if isinstance(function, FuncOp) else ():
                if isinstance(inner, tensor.ExtractOp) and isinstance(
                    generic := inner.parent_op(), linalg.ops.GenericOp
                ):
                    _clamp(ctx, generic, inner)


def _clamp(ctx: CompilerContext, generic: linalg.ops.GenericOp, read: tensor.ExtractOp) -> None:
    shapes = ShapeAnalysis(ctx.symbols)
    ranges = ScalarRanges(shapes, StructuredOp(generic), ctx.resources)
    for axis, (position, size) in enumerate(zip(read.indices, shapes.dims(read.tensor), strict=True)):
        found = ranges.of(position)
        below, behind = _open_ends((found.low, found.high), found.met, size)
        if below or behind:
            set_operand(read, 1 + axis, _clamped(generic, read, axis, below=below, behind=behind))


def _open_ends(ends: tuple[Dim | None, Dim | None], met: bool, size: Dim) -> tuple[bool, bool]:
    """Whether places may lie below 0, and behind the last one, without anything that asks for them not to. A tensor
    without elements has no place at all, so what was brought inside is so for one that has some: where any is read is
    asked of the sizes (`require-readable-positions`)."""
    low, high = ends
    last = d.sub(size, 1)
    below = low is None or not (met or never_less(low, d.minimum(last, 0)))
    return below, high is None or not (met or never_less(d.maximum(last, 0), high))


def _clamped(
    generic: linalg.ops.GenericOp, read: tensor.ExtractOp, axis: int, *, below: bool, behind: bool
) -> SSAValue:
    """The place along `axis`, brought inside at the ends that are open."""
    emit, position = Emitter.before(read), read.indices[axis]
    if behind:
        position = emit.add(arith.MinSIOp(position, _last(generic, read, axis))).result
    return emit.add(arith.MaxSIOp(position, emit.index(0))).result if below else position


def _last(generic: linalg.ops.GenericOp, read: tensor.ExtractOp, axis: int) -> SSAValue:
    """The last place along `axis`, computed outside of the body."""
    emit, size = Emitter.before(generic), shape_of(read.tensor)[axis]
    if size != DYNAMIC_INDEX:
        return Emitter.before(read).index(size - 1)
    return emit.add(arith.SubiOp(emit.dim(read.tensor, axis), emit.index(1))).result


EXPORT = ClampUnprovenPositionsPass
