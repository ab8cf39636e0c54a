"""clone-reads: a slice, pad, border, transpose or widening of an argument per reader, so that each may read the tensor
below in place.

    x ──> slice ──┬─> pad ──> convolution            x ──> slice ──> pad ──> convolution
                  └─> add                     =>     x ──> slice ──> add

None of them computes anything, so they may be repeated wherever they are read. Contiguous slices are views already
(`analysis/views.py`) and stay as they are; what the caller gets is stored once. A transpose is repeated where all its
readers have it in their addresses (concats, pads, roots), and the tensor below is stored in any case: an argument.
Elementwise readers would load it in columns again and again. It must be small, too: then the launch is most of the
copy, while roots are a few percent slower over large images with channels far apart (`MachineCosts.crossed_elements`).
A border that repeats its tensor is repeated where all its readers are roots. A widening is repeated for each reader:
it is done where elements are loaded, half of the bytes, and so is the rounding to halves of a network whose arguments
are f32 (measured, one thread and two, 64 and 3 channels: two convolutions 1.02 and .80 of the time, a product and a
residual .93 to .98, each with a dispatch less). Where a root reads it that would evaluate it again and again
(a depthwise window, a pooling), all share one (dilated convolutions of one f16 image, one thread: 1.01 of the time,
1.11 of a large one; two threads .93 to .99). What quantises an argument is repeated for each reader where a product is
among them (at `aggressive` in any case), or a depthwise or pooling window, but not where several windows are: a
dispatch less, and where channels lie apart, each reader lays them out in pairs as it rounds (measured: convolutions of
two windows .35 to .62 of the time, residual blocks .98 to 1.05, around a depthwise window .96 to 1.03, a pooling beside
pointwise convolutions .90 to 1.0). Not where several products read it along the same rows: those make each row once
(`analysis/shared_rows.py`; 96x128 and 197x384 for three products .92 to 1.02 of the time, with a dispatch less). What
is computed of slices of stored integers is repeated likewise: what makes those stores them in any case (halves of a
convolution's channels: .96 to 1.03, with a dispatch less). A transposition of a quantised argument is made once: two
convolutions of one small image would take 1.12 of the time. A small vector that is made of arguments is made by each
large reader, ahead of its rows (`analysis/small_chains.py`), and what makes the keys of several sorts by each sort.
Copies that no reader took in are one again after `merge-equal-regions`.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, func, linalg, tensor
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import BlockArgument, Operation
from xdsl.passes import ModulePass

from fuseline.analysis.borders import border_read
from fuseline.analysis.idioms import idiom_of
from fuseline.analysis.quantized_arguments import Origin, origin_of, quantizes_argument
from fuseline.analysis.ranks import Rank
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.shared_rows import makes_shared_rows
from fuseline.analysis.small_chains import SmallChains
from fuseline.analysis.structured import CHANNEL_WINDOWS, DENSE, HEAVY, Kind, StructuredOp, is_generic, kind
from fuseline.analysis.views import base_of, is_view
from fuseline.ir.context import CompilerContext
from fuseline.ir.costs import MachineCosts, assumed_size
from fuseline.ir.dim import product
from fuseline.ir.fast.direct import insert_before, ops_of, result_of, set_operand, users_of_value
from fuseline.ir.functions import functions
from fuseline.ir.target_description import TargetDescription
from fuseline.passes.fusion.conversions import WIDENINGS, converts

REPEATED = WIDENINGS | {arith.TruncFOp}
"""Conversions of an argument that every reader makes for itself: no instruction more than its loads take, or one."""

_MOVES = (tensor.ConcatOp, tensor.PadOp, tensor.ExtractSliceOp)


@dataclass(frozen=True)
class CloneReadsPass(ModulePass):
    """`level`: that of fusion."""

    name = "clone-reads"

    level: str = "default"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Copy from the last op to the first, so that what a copy reads can be copied too."""
        assert isinstance(ctx, CompilerContext)
        costs, shapes = ctx.target.costs, ShapeAnalysis()
        for function in functions(op):
            ops = list(ops_of(function.body.block))
            small = SmallChains(ops, costs, ctx.target.threads, shapes)
            # a pad of a slice first: then the slice has as many readers
            for inner in reversed(ops):
                rounded = self._is_rounded_by_each(inner, shapes, ctx.target)
                if rounded or _is_repeatable(inner, costs, shapes) or small.makes(inner):
                    _clone(inner)

    def _is_rounded_by_each(self, op: Operation, shapes: ShapeAnalysis, target: TargetDescription) -> bool:
        origin = origin_of(op)
        if origin is None or (windows := _windows(op)) > 1:
            return False
        if origin is Origin.CUT_INTEGERS:
            return not windows and _is_read_by_product(op)
        if makes_shared_rows(op, shapes, target):
            return False
        return self.level == "aggressive" or (self.level == "default" and (windows == 1 or _is_read_by_product(op)))


def _is_repeatable(op: Operation, costs: MachineCosts, shapes: ShapeAnalysis) -> bool:
    if _converts_an_argument(op):
        return not _windows(op)
    if _makes_keys(op, shapes):
        return True
    if type(op) in (tensor.ExtractSliceOp, tensor.PadOp):
        return not is_view(op)
    if kind(op) is Kind.GATHER and border_read(op, shapes) is not None:
        return all(kind(reader) in HEAVY for reader in users_of_value(result_of(op)))
    if kind(op) is not Kind.TRANSPOSE or not isinstance(base_of(op.operands[0]), BlockArgument):
        return False
    if not all(type(reader) in _MOVES or kind(reader) in HEAVY for reader in users_of_value(result_of(op))):
        return False
    return assumed_size(product(shapes.dims(result_of(op)))) <= costs.crossed_elements


def _converts_an_argument(op: Operation) -> bool:
    """Whether all that `op` does is to widen or round elements of a tensor that is stored in any case."""
    if kind(op) is not Kind.ELEMENTWISE or not converts(op, REPEATED):
        return False
    return isinstance(base_of(op.operands[0]), BlockArgument)


def _makes_keys(op: Operation, shapes: ShapeAnalysis) -> bool:
    """Whether several sorts read what `op` computes, and nothing else does: each evaluates its keys as it walks by."""
    if kind(op) is not Kind.ELEMENTWISE or len(op.results) != 1:
        return False
    readers = [reader for reader in users_of_value(result_of(op)) if type(reader) is not tensor.DimOp]
    return len(readers) > 1 and all(is_generic(reader) and _ranks(reader, shapes) for reader in readers)


def _ranks(reader: linalg.ops.GenericOp, shapes: ShapeAnalysis) -> bool:
    view = StructuredOp(reader)
    return bool(view.reduction) and isinstance(idiom_of(view, view.loops(shapes)), Rank)


def _windows(op: Operation) -> int:
    """How many depthwise or pooling windows read `op`, maybe through padding and what else quantises."""
    readers = dict.fromkeys(users_of_value(result_of(op)))
    windows = sum(kind(reader) in CHANNEL_WINDOWS for reader in readers)
    return windows + sum(_windows(reader) for reader in readers if _pads_or_quantizes(reader))


def _is_read_by_product(op: Operation) -> bool:
    """Whether a product or convolution reads `op`, maybe through what moves it or quantises it, too: other readers
    share loops with `op`, and may store its result for all."""
    readers = users_of_value(result_of(op))
    return any(kind(reader) in DENSE for reader in readers) or any(
        _is_read_by_product(reader) for reader in readers if _moves_or_quantizes(reader)
    )


def _pads_or_quantizes(op: Operation) -> bool:
    return type(op) is tensor.PadOp or quantizes_argument(op)


def _moves_or_quantizes(op: Operation) -> bool:
    return type(op) in _MOVES or kind(op) is Kind.TRANSPOSE or quantizes_argument(op)


def _clone(read: Operation) -> None:
    """The first reader keeps `read`; where one is no dispatch, that one does. They are taken in the order of the
    program: how uses are linked tells which pass made them when."""
    users = dict.fromkeys(users_of_value(result_of(read)))
    place = {op: number for number, op in enumerate(ops_of(read.parent))} if len(users) > 1 and read.parent else {}
    readers = sorted(users, key=lambda reader: (_computes(reader), place.get(reader, len(place))))
    for reader in readers[1:]:
        if _computes(reader):
            _give_own(read, reader)


def _computes(reader: Operation) -> bool:
    """Whether `reader` becomes part of a dispatch, rather than handing the value to the caller or to a host
    operator."""
    return not isinstance(reader, func.ReturnOp | func.CallOp)


def _give_own(read: Operation, reader: Operation) -> None:
    copy = read.clone()
    insert_before(copy, read)
    for i, operand in enumerate(reader.operands):
        if operand is result_of(read):
            set_operand(reader, i, copy.results[0])


EXPORT = CloneReadsPass
