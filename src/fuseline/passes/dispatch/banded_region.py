"""A convolution and the one that reads its result, as one dispatch over bands of rows: what the first makes of a band
lies in scratch, and its result is stored nowhere.

    hr(y, x, c) ──> pad ──> last(y', x', k)      =>      for bands of y': hr of the band and of a row above and below it

Rows between bands are computed by both. To a band, a row that the pad adds is a row like any other, so that the first
writes the pad's number there itself.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.ir import Block, OpResult, Region

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.dispatch.fused_loops import LOOPS_ATTRIBUTE, FusedLoops, MemberLoops, Role, members_of
from fuseline.dispatch.loops_attribute import to_attribute
from fuseline.dispatch.member_classes import with_classes
from fuseline.dispatch.region_names import member_ids
from fuseline.dispatch.view import MEMBERS_ATTRIBUTE, ROOT_ATTRIBUTE
from fuseline.ir.fast.direct import append, erase, insert_before, replace_uses
from fuseline.ir.flow import DispatchRegionOp, ReturnOp
from fuseline.ir.provenance import carry
from fuseline.passes.dispatch.banded_pair import BandedPair
from fuseline.passes.dispatch.region_rows import RegionRows, pad_number
from fuseline.passes.dispatch.row_bands import BandWriter, WrittenMember


def banded_region(pair: BandedPair, count: int, shapes: ShapeAnalysis) -> DispatchRegionOp:
    """The two dispatches as one over `count` bands, of which the rows are a multiple; it stands nowhere yet."""
    new = Block()
    writer = BandWriter(new)
    for_image, for_results = pair.bands(count)
    writer.computed(pair.maker, for_image)
    _hand_over(pair, count, writer)
    for op in pair.maker.loops:
        writer.member(op).attributes.pop(ROOT_ATTRIBUTE, None)  # the dispatch is built around the reader's
    writer.computed(pair.reader, for_results)
    if pair.follower is not None:
        for op in pair.reader.loops:
            writer.member(op).attributes.pop(ROOT_ATTRIBUTE, None)
        writer.written[pair.reader.region.results[0]] = writer.written[pair.reader.results[0]]
        writer.computed(pair.follower, for_results)
    whole = [writer.whole(value, pair.last.axes[value]) for value in pair.last.results]
    end = ReturnOp(whole)
    append(end, new)
    region = DispatchRegionOp([value.type for value in whole], [], Region(new))
    carry(tuple(rows.region for rows in pair.parts), (region, end))
    _describe(region, pair, count, writer.members, shapes)
    return region


def put(region: DispatchRegionOp, pair: BandedPair) -> None:
    """Put `region` in place of those of `pair`."""
    last = pair.last.region
    insert_before(region, last)
    for before, after in zip(last.results, region.results, strict=True):
        replace_uses(before, after)
    for rows in reversed(pair.parts):
        erase(rows.region)


def _hand_over(pair: BandedPair, count: int, writer: BandWriter) -> None:
    """What the reader finds as the image: that of the maker, with the border along the rows in it."""
    (made,) = pair.maker.results
    assert isinstance(made, OpResult)
    number = pad_number(pair.read.pad) if pair.read.pad is not None else 0
    assert number is not None
    writer.edged(made, pair.read.axis, pair.image_rows, pair.bands(count)[0], number)
    writer.written[pair.image] = writer.written[made]


def _describe(
    region: DispatchRegionOp, pair: BandedPair, count: int, members: list[WrittenMember], shapes: ShapeAnalysis
) -> None:
    """Say what the members are called, and that those which are computed share the loop over bands."""
    names = {op: name for rows in pair.parts for op, name in _names(rows).items()}
    ids = [f"{names[one.of]}{one.suffix}" for one in members]
    loops = [
        MemberLoops((), Role.INLINED)
        if one.row is None
        else MemberLoops(tuple(0 if loop == one.row else None for loop in range(one.rank)))
        for one in members
    ]
    region.attributes[MEMBERS_ATTRIBUTE] = ArrayAttr([StringAttr(name) for name in ids])
    said = FusedLoops(((count,),), tuple(loops))
    region.attributes[LOOPS_ATTRIBUTE] = to_attribute(with_classes(said, region.body.block, shapes, ids[-1]))


def _names(rows: RegionRows) -> dict[object, str]:
    """The ids of the members of a region."""
    members = members_of(rows.region.body.block)
    ids = member_ids(rows.region) or [op.name for op in members]
    return dict(zip(members, ids, strict=True))
