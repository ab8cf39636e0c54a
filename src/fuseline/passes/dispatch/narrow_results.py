"""narrow-results: what a dispatch needs wide itself, but made of 8 bits, is stored so and widened by its readers.

    a: quantize (i8) ──> i16 ──┬─> product          a: quantize (i8) ──┬─> i16 ──> product
                               └─> stored     =>                       └─> stored
    b:                 add(i16)                     b: i8 ──> i16 ──> add

Such a value (the shortcut of a residual block) lives long: it is half as large so. Readers pay for it: a product packs
what it widens (`wide_results.py` has what keeps a result wide). So only those are narrowed that live where most memory
is in use (`live_results.py`), as long as one does: elsewhere it would take nothing off what a run needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.context import Context
from xdsl.dialects import linalg, tensor
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.dispatch.fused_loops import LOOPS_ATTRIBUTE, MemberLoops, Role, members_of
from fuseline.dispatch.loops_attribute import from_attribute, to_attribute
from fuseline.dispatch.member_classes import with_classes
from fuseline.dispatch.region_names import member_ids, region_name
from fuseline.dispatch.view import MEMBERS_ATTRIBUTE
from fuseline.ir.context import CompilerContext
from fuseline.ir.fast.direct import erase, insert_before, result_of, set_operand, set_type, users_of_value
from fuseline.ir.flow import DispatchRegionOp
from fuseline.ir.functions import functions
from fuseline.ir.provenance import node_names
from fuseline.ir.rounds import rounds
from fuseline.passes.dispatch.live_results import LiveResults
from fuseline.passes.dispatch.wide_results import WideResult, kept_wide, wide_results

AGAIN = "widened"
"""What a widening is called that a reader has for itself."""


@dataclass(frozen=True)
class NarrowResultsPass(ModulePass):
    """`enabled`: whether any result is narrowed."""

    name = "narrow-results"
    enabled: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Narrow within the block of each function, if enabled."""
        assert isinstance(ctx, CompilerContext)
        for function in functions(op) if self.enabled else ():
            _visit(ctx, function.body.block)


def _visit(ctx: CompilerContext, block: Block) -> None:
    able = list[WideResult]()
    shapes = ShapeAnalysis(ctx.symbols)
    for one in wide_results(block):
        refused = kept_wide(one, shapes, ctx.target)
        if refused is None:
            able.append(one)
        elif refused.code != "not-needed-wide":
            _note(ctx, one, f"stored in 16 bits ({refused.code}): {refused.detail}")
    if able:
        _narrow_at_peak(ctx, block, shapes, able)


def _narrow_at_peak(ctx: CompilerContext, block: Block, shapes: ShapeAnalysis, able: Sequence[WideResult]) -> None:
    chosen = _at_peaks(LiveResults(block, shapes), able)
    for one in able:
        if one in chosen:
            _note(ctx, one, "stored in 8 bits: it lives where most memory is in use")
            _narrow(shapes, one)
        else:
            _note(ctx, one, "stored in 16 bits (not-at-peak): a run would need as much memory without it")


def _at_peaks(lives: LiveResults, able: Sequence[WideResult]) -> list[WideResult]:
    """Those with which least memory is in use at once: what lives where most is, and then again, until nothing there
    can be narrowed."""
    (least, there), chosen, best = lives.peak(), list[WideResult](), 0
    for _ in rounds("results in 8 bits", most=len(able) + 1):
        more = [one for one in able if one.result in there and one not in chosen]
        if not more:
            break
        chosen += more
        for one in more:
            lives.halve(one.result)
        peak, there = lives.peak()
        if peak < least:
            least, best = peak, len(chosen)
    return chosen[:best]


def _note(ctx: CompilerContext, one: WideResult, text: str) -> None:
    ctx.records.notes.append(f"{node_names(one.widening) or region_name(one.region)}: {text}")


# the rewriting --------------------------------------------------------------------------------------------------------


def _narrow(shapes: ShapeAnalysis, one: WideResult) -> None:
    """Hand out what the widening reads as the result, with a widening in each dispatch that reads it."""
    result, region, number, widening = one.result, one.region, one.number, one.widening
    end = region.body.block.last_op
    assert end is not None
    readers = users_of_value(result)
    name = member_ids(region)[_place(region, widening)] if member_ids(region) else ""
    set_operand(end, number, widening.inputs[0])
    set_type(result, widening.inputs[0].type)
    homes = dict.fromkeys(reader.parent_op() for reader in readers)
    for home in homes:
        assert type(home) is DispatchRegionOp
        _widen_inside(home, result, widening, [reader for reader in readers if reader.parent_op() is home])
        _add_member(shapes, home, f"{name}-{AGAIN}")
    if widening.results[0].first_use is None:
        _drop_member(shapes, region, widening)


def _place(region: DispatchRegionOp, op: Operation) -> int:
    return members_of(region.body.block).index(op)


def _widen_inside(
    home: DispatchRegionOp,
    narrow: SSAValue,
    widening: linalg.ops.GenericOp,
    readers: Sequence[Operation],
) -> None:
    first = home.body.block.first_op
    assert first is not None
    empty = tensor.EmptyOp([], widening.results[0].type)
    empty.location = widening.location
    copy = widening.clone({widening.inputs[0]: narrow, widening.outputs[0]: empty.results[0]})
    insert_before(empty, first)
    insert_before(copy, first)
    for reader in readers:
        for i, operand in enumerate(reader.operands):
            if operand is narrow:
                set_operand(reader, i, result_of(copy))


def _add_member(shapes: ShapeAnalysis, home: DispatchRegionOp, name: str) -> None:
    """Say that another member stands before the others, evaluated where it is read."""
    ids = [name, *member_ids(home)]
    home.attributes[MEMBERS_ATTRIBUTE] = ArrayAttr([StringAttr(one) for one in ids])
    loops = from_attribute(home.attributes[LOOPS_ATTRIBUTE], shapes.symbols, region_name(home))
    said = replace(loops, members=(MemberLoops((), Role.INLINED), *loops.members), classes=())
    if loops.classes:
        said = with_classes(said, home.body.block, shapes, region_name(home))
    home.attributes[LOOPS_ATTRIBUTE] = to_attribute(said)


def _drop_member(shapes: ShapeAnalysis, home: DispatchRegionOp, op: Operation) -> None:
    place = _place(home, op)
    ids = [one for i, one in enumerate(member_ids(home)) if i != place]
    loops = from_attribute(home.attributes[LOOPS_ATTRIBUTE], shapes.symbols, region_name(home))
    erase(op)
    home.attributes[MEMBERS_ATTRIBUTE] = ArrayAttr([StringAttr(one) for one in ids])
    said = replace(loops, members=loops.members[:place] + loops.members[place + 1 :], classes=())
    if loops.classes:
        said = with_classes(said, home.body.block, shapes, region_name(home))
    home.attributes[LOOPS_ATTRIBUTE] = to_attribute(said.canonical())


EXPORT = NarrowResultsPass
