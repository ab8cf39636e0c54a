"""A convolution and the one that reads its result, as one dispatch over bands of rows: what the first makes of a band
lies in scratch, and its result is stored nowhere.

    hr(y, x, c) ──> pad ──> last(y', x', k)      =>      for bands of y': hr of the band and of a row above and below it

Rows between bands are computed by both. To a band, a row that the pad adds is a row like any other, so that the first
writes the pad's number there itself.

Bands of two heights are arms of the dispatch, each of which writes its rows of the results:

    257 rows      =>      an arm of 15 bands of 16 rows, an arm of a band of 17
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.ir import Block, OpResult, Region, SSAValue

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.dispatch.fused_loops import LOOPS_ATTRIBUTE, FusedLoops, MemberLoops, Role, members_of
from fuseline.dispatch.loops_attribute import to_attribute
from fuseline.dispatch.member_classes import with_classes
from fuseline.dispatch.region_names import member_ids
from fuseline.dispatch.view import MEMBERS_ATTRIBUTE, ROOT_ATTRIBUTE
from fuseline.ir.build import element_of, shape_of, tensor_type
from fuseline.ir.fast.create import create_concat
from fuseline.ir.fast.direct import append, erase, insert_before, replace_uses
from fuseline.ir.flow import DispatchRegionOp, ReturnOp
from fuseline.ir.provenance import carry
from fuseline.passes.dispatch.banded_pair import BandedPair
from fuseline.passes.dispatch.region_rows import RegionRows, pad_number
from fuseline.passes.dispatch.row_bands import Bands, BandWriter, WrittenMember

HIGHER, JOINED = "-higher", "-joined"
"""What is put behind the names of ops over bands that have a row more, and of what joins the rows of all."""


def banded_region(pair: BandedPair, cut: Sequence[Bands], shapes: ShapeAnalysis) -> DispatchRegionOp:
    """The two dispatches as one over the bands of `cut`, each an arm where they are several; it stands nowhere yet."""
    new = Block()
    writers = [BandWriter(new, HIGHER if number else "") for number in range(len(cut))]
    parts = [_banded(pair, bands, writer) for bands, writer in zip(cut, writers, strict=True)]
    whole = list(parts[0]) if len(cut) == 1 else _joined(pair, parts, new)
    end = ReturnOp(whole)
    append(end, new)
    region = DispatchRegionOp([value.type for value in whole], [], Region(new))
    carry(tuple(rows.region for rows in pair.parts), (region, end))
    _describe(region, pair, cut, [writer.members for writer in writers], shapes)
    return region


def _banded(pair: BandedPair, bands: Bands, writer: BandWriter) -> list[SSAValue]:
    """The rows of the results that lie in some bands."""
    writer.computed(pair.maker, pair.of_image(bands))
    _hand_over(pair, bands, writer)
    for op in pair.maker.loops:
        writer.member(op).attributes.pop(ROOT_ATTRIBUTE, None)  # the dispatch is built around the reader's
    writer.computed(pair.reader, bands)
    if pair.follower is not None:
        for op in pair.reader.loops:
            writer.member(op).attributes.pop(ROOT_ATTRIBUTE, None)
        writer.written[pair.reader.region.results[0]] = writer.written[pair.reader.results[0]]
        writer.computed(pair.follower, bands)
    return [writer.whole(value, pair.last.axes[value]) for value in pair.last.results]


def _joined(pair: BandedPair, parts: Sequence[Sequence[SSAValue]], block: Block) -> list[SSAValue]:
    """The results, whose rows are made in several parts."""
    found: list[SSAValue] = []
    for number, value in enumerate(pair.last.results):
        rows = [part[number] for part in parts]
        op = create_concat(rows, pair.last.axes[value], tensor_type(element_of(value), shape_of(value)))
        carry((pair.last.region,), (op,))
        append(op, block)
        found.append(op.result)
    return found


def put(region: DispatchRegionOp, pair: BandedPair) -> None:
    """Put `region` in place of those of `pair`."""
    last = pair.last.region
    insert_before(region, last)
    for before, after in zip(last.results, region.results, strict=True):
        replace_uses(before, after)
    for op in (*(rows.region for rows in reversed(pair.parts[1:])), pair.opened, pair.maker.region):
        if op is not None:
            erase(op)


def _hand_over(pair: BandedPair, bands: Bands, writer: BandWriter) -> None:
    """What the reader finds as the image: that of the maker, with the border along the rows in it."""
    (made,) = pair.maker.results
    assert isinstance(made, OpResult)
    number = pad_number(pair.read.pad) if pair.read.pad is not None else 0
    assert number is not None
    writer.edged(made, pair.maker.axes[made], pair.image_rows, pair.of_image(bands), number)
    writer.written[pair.image] = writer.written[made]
    if pair.opened is not None:
        writer.opened(pair.opened, pair.maker.axes[made])


def _describe(
    region: DispatchRegionOp,
    pair: BandedPair,
    cut: Sequence[Bands],
    written: Sequence[Sequence[WrittenMember]],
    shapes: ShapeAnalysis,
) -> None:
    """Say what the members are called, and that those of an arm which are computed share the loop over its bands."""
    names = {op: name for rows in pair.parts for op, name in _names(rows).items()}
    ids = [f"{names[one.of]}{one.suffix}" for members in written for one in members]
    loops = [_loops(one, arm) for arm, members in enumerate(written) for one in members]
    grids: list[tuple[int, ...]] = [(bands.count,) for bands in cut]
    for number, value in enumerate(pair.last.results if len(cut) > 1 else ()):  # a concat is an arm of its own
        ids.append(f"{ids[-1 - number]}{JOINED}{number or ''}")
        loops.append(MemberLoops(tuple(range(len(shape_of(value)))), arm=len(grids)))
        grids.append(shape_of(value))
    region.attributes[MEMBERS_ATTRIBUTE] = ArrayAttr([StringAttr(name) for name in ids])
    said = FusedLoops(tuple(grids), tuple(loops))
    region.attributes[LOOPS_ATTRIBUTE] = to_attribute(with_classes(said, region.body.block, shapes, ids[-1]))


def _loops(one: WrittenMember, arm: int) -> MemberLoops:
    """The loops of a member that was written: the one over bands is the grid's."""
    if one.row is None:
        return MemberLoops((), Role.INLINED, arm)
    return MemberLoops(tuple(0 if loop == one.row else None for loop in range(one.rank)), arm=arm)


def _names(rows: RegionRows) -> dict[object, str]:
    """The ids of the members of a region."""
    members = members_of(rows.region.body.block)
    ids = member_ids(rows.region) or [op.name for op in members]
    return dict(zip(members, ids, strict=True))
