"""Dispatch regions that a round of fusion finds: their ops go back among the others, and what they shared is kept as
the groups that the round starts from (`fusion/starting_groups.py`).

    %r = flow.dispatch.region {                  %m = matmul ..
      %m = matmul ..                       =>    %y = relu(%m)          a starting group: {%m, %y}, with its loops
      %y = relu(%m)
      flow.return %y
    }
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Block, Operation
from xdsl.utils.exceptions import VerifyException

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import Kind, kind
from fuseline.dispatch.derived_loops import derived_loops
from fuseline.dispatch.fused_loops import LOOPS_ATTRIBUTE, FusedLoops, members_of, require_match
from fuseline.dispatch.loops_attribute import from_attribute
from fuseline.dispatch.region_names import region_name
from fuseline.dispatch.view import ROOT_ATTRIBUTE
from fuseline.errors import FuselineError
from fuseline.ir.fast.direct import body_of, detach, erase, insert_before, ops_of, replace_uses
from fuseline.ir.flow import DispatchRegionOp


@dataclass(frozen=True)
class OpenedRegion:
    """A region as it was: its members in order, and the loops that they share, `derived` where nobody said them."""

    members: tuple[Operation, ...]
    loops: FusedLoops
    derived: bool = False


def open_regions(block: Block, shapes: ShapeAnalysis) -> list[OpenedRegion]:
    """Dissolve the regions of `block` that hold ops fusion knows; the others are ops of their own, and stay.

    Raises FuselineError (E0302) naming a region that is malformed: one that does not return its results, has another
    region inside, or loops that are not those of its body.
    """
    regions = [op for op in ops_of(block) if type(op) is DispatchRegionOp and _opens(op)]
    found = [_opened(region, shapes) for region in regions]
    for region in regions:
        dissolve(region)
    return found


def _opens(region: DispatchRegionOp) -> bool:
    _require_body(region)
    members = members_of(body_of(region))
    return bool(members) and all(kind(op) is not Kind.OTHER for op in members)


def _require_body(region: DispatchRegionOp) -> None:
    try:
        region.verify_()
    except VerifyException as error:
        raise _malformed(region, str(error)) from error
    if any(type(inner) is DispatchRegionOp for op in ops_of(body_of(region)) for inner in op.walk()):
        raise _malformed(region, "there is another dispatch region inside")


def _malformed(region: DispatchRegionOp, message: str) -> FuselineError:
    return FuselineError("E0302", f"{region.name}: {message}", node=region_name(region))


def _opened(region: DispatchRegionOp, shapes: ShapeAnalysis) -> OpenedRegion:
    body, said = body_of(region), region.attributes.get(LOOPS_ATTRIBUTE)
    name = region_name(region)
    loops = from_attribute(said, shapes.symbols, name) if said is not None else derived_loops(body, shapes)
    require_match(loops, body, shapes, name)
    return OpenedRegion(tuple(members_of(body)), loops, derived=said is None)


def dissolve(region: DispatchRegionOp) -> None:
    """Put the ops of a region in its place."""
    *ops, end = ops_of(body_of(region))
    for old, new in zip(region.results, end.operands, strict=True):
        replace_uses(old, new)
    erase(end)
    for op in ops:
        op.attributes.pop(ROOT_ATTRIBUTE, None)
        detach(op)
        insert_before(op, region)
    erase(region)
