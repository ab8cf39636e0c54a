"""What a target says of a dispatch that would be two over bands of rows: its limits, and its veto."""

from __future__ import annotations

from collections.abc import Sequence

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.dispatch.fused_loops import members_of
from fuseline.ir.context import CompilerContext
from fuseline.ir.fast.direct import erase
from fuseline.passes.dispatch.banded_pair import BandedPair
from fuseline.passes.dispatch.banded_region import banded_region
from fuseline.passes.dispatch.legality import TargetVeto
from fuseline.passes.dispatch.region_rows import region_loops
from fuseline.passes.dispatch.row_bands import Bands
from fuseline.passes.fusion.decision import WhyNot
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.limits import DispatchLimits
from fuseline.passes.fusion.merging import joined
from fuseline.passes.fusion.starting_groups import starting_group


def bands_refusal(ctx: CompilerContext, pair: BandedPair, cut: Sequence[Bands], shapes: ShapeAnalysis) -> WhyNot | None:
    """Why the target does not take `pair` over the bands of `cut`, None where it does. Leaves the program as it is."""
    region = banded_region(pair, cut, shapes)
    loops, graph = region_loops(region, shapes), FusionGraph(region.body.block, shapes)
    assert loops is not None
    groups = starting_group(members_of(region.body.block), loops, graph, ()).groups
    limits = DispatchLimits(graph, ctx.target, TargetVeto(ctx.legal, shapes))
    found = limits.refusal(groups[0] if len(groups) == 1 else joined(groups))
    erase(region)
    return found
