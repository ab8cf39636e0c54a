"""fuse-row-bands: a convolution whose result is large, and that another one alone reads, is computed in the dispatch of
that, band by band of rows (`banded_region.py`): the image between them is stored nowhere.

    a = conv3x3(x)   360 x 248 x 64                    for bands of 30 rows:   a' = 32 rows of conv3x3(x)
    b = conv3x3(a)   360 x 248 x 3           =>                                b' = conv3x3(a')

Rows between bands are computed twice (`band_height.py` weighs that). So it is done where most memory is in use
(`live_results.py`) and as long as a run needs less for it. A depthwise window has bands with what makes its image, and
with the product behind it, where that takes less time (`choose_cached_bands`):

    expand(y, x, c) ──> depthwise(y', x', c) ──> project(y', x', k)

So has a product that is put elsewhere (`banded_move.py`). What a plan, a rule or its absence keeps apart stays so: the
last word of the rules on each edge must have been one that bands answer (`ANSWERED`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, pairwise
from pathlib import Path
from typing import NamedTuple

import msgspec
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, SSAValue
from xdsl.passes import ModulePass

from fuseline.analysis.cost import num_bytes
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.dispatch.region_names import member_ids, region_name
from fuseline.ir.context import CompilerContext
from fuseline.ir.costs import assumed_size
from fuseline.ir.fast.direct import ops_of
from fuseline.ir.flow import DispatchRegionOp
from fuseline.ir.provenance import node_names
from fuseline.ir.rounds import rounds
from fuseline.passes.dispatch.band_height import (
    BandChoice,
    choose_bands,
    choose_cached_bands,
    sizes_of,
)
from fuseline.passes.dispatch.banded_legality import bands_refusal
from fuseline.passes.dispatch.banded_move import moved_pair
from fuseline.passes.dispatch.banded_pair import BandedPair, Sharing, banded_pair
from fuseline.passes.dispatch.banded_region import banded_region, put
from fuseline.passes.dispatch.live_results import LiveResults
from fuseline.passes.fusion.decision import WHY_NOT_CODES, WhyNot
from fuseline.passes.fusion.plan import id_of, read_plan
from fuseline.report.records import Decision
from fuseline.targets.target import Refusal

AGGRESSIVELY_SLOWER = 0.15
"""The share of their time that dispatches around a depthwise window may be predicted to take longer as one at the level
`aggressive`, as rules may make them."""

_COSTS = frozenset({"scratch", "unprofitable", "parallelism"})
"""What bands are made to keep small: what is kept, what is computed twice, one workgroup's share."""

ANSWERED = {
    Sharing.WINDOW: frozenset({"two-roots"}),
    Sharing.CHANNEL_WINDOW: _COSTS | {"two-roots"},
    Sharing.MOVE: _COSTS | {"reshape-between", "indexing-map"},
}
"""Why the rules may have kept two dispatches apart that share bands."""

NOT_AT_PEAK = Refusal("not-at-peak", "a run would need as much memory without it")
"""Why two that could share bands for memory are not the better for it."""

TAKEN = Refusal("region", "one of the dispatches shares bands with others")
"""Why two that could share bands do not, where one of them does with a third."""


@dataclass(frozen=True)
class FuseRowBandsPass(ModulePass):
    """`enabled`: whether it is done at all. `level`: `default` or `aggressive`, for how much longer it may take around
    a depthwise window. `plan`: the file of a fusion plan; what that forbids to meet stays apart. `code_limits`: by
    member, of dispatches that came out too long; these stay as they are."""

    name = "fuse-row-bands"
    enabled: bool = True
    plan: str = ""
    level: str = "default"
    code_limits: Mapping[str, int] = field(default_factory=dict[str, int], metadata={"option": False})

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the functions of `op`; notes and decisions go to `ctx.records`. Raises E0701 for a file that is no
        plan."""
        assert isinstance(ctx, CompilerContext)
        forbidden = read_plan(Path(self.plan)).forbid if self.plan else ()
        for function in op.ops:
            if self.enabled and isinstance(function, FuncOp) and function.body.blocks:
                self._visit(ctx, function.body.block, [set(ids) for ids in forbidden])

    def _visit(self, ctx: CompilerContext, block: Block, forbidden: Sequence[set[str]]) -> None:
        shapes = ShapeAnalysis(ctx.symbols)
        pairs = [_without_follower(ctx, pair, forbidden) for pair in _pairs(block, shapes)]
        pairs = [pair for pair in pairs if _is_answered(ctx, pair) and not _is_in(pair, forbidden)]
        pairs = [pair for pair in pairs if self.code_limits.keys().isdisjoint(chain(*_members(pair)))]
        chosen = _faster(
            ctx,
            [pair for pair in pairs if pair.is_cached],
            AGGRESSIVELY_SLOWER if self.level == "aggressive" else None,
            shapes,
        )
        others = [pair for pair in pairs if not pair.is_cached and _is_apart(pair, chosen)]
        chosen += _at_peaks(ctx, LiveResults(block, shapes), others, shapes) if others else []
        chosen_for = {one.pair.image: one for one in chosen}
        for pair in reversed(pairs):  # the last first: a pair knows what it reads, and that may be another one's result
            if pair.image in chosen_for:
                _fuse(ctx, chosen_for[pair.image], shapes)


def _pairs(block: Block, shapes: ShapeAnalysis) -> Iterator[BandedPair]:
    """The pairs of a block, in order."""
    for region in ops_of(block):
        if type(region) is DispatchRegionOp and len(region.results) == 1:
            for found in (banded_pair(region, shapes), moved_pair(region, shapes)):
                if isinstance(found, BandedPair):
                    yield found


class Banded(NamedTuple):
    """A pair and its bands."""

    pair: BandedPair
    choice: BandChoice


def _members(pair: BandedPair) -> tuple[tuple[str, ...], ...]:
    """The ids of the members of each region."""
    return tuple(member_ids(rows.region) for rows in pair.parts)


def _edges(ctx: CompilerContext, pair: BandedPair) -> list[list[int]]:
    """The decisions on the edges between each two regions, by their number."""
    return [
        [i for i, one in enumerate(ctx.records.decisions) if one.producer in makers and one.consumer in readers]
        for makers, readers in pairwise(_members(pair))
    ]


def _is_answered(ctx: CompilerContext, pair: BandedPair) -> bool:
    """Whether there are decisions on each edge, and nothing but what bands answer kept the regions apart."""
    edges, answered = _edges(ctx, pair), ANSWERED[pair.sharing]
    return all(edges) and all(ctx.records.decisions[i].code in answered for i in chain(*edges))


def _decide(ctx: CompilerContext, pair: BandedPair, word: Callable[[Decision], Decision]) -> None:
    """Put a word on bands in place of the decisions on the edges of a pair."""
    for i in chain(*_edges(ctx, pair)):
        ctx.records.decisions[i] = word(ctx.records.decisions[i])


def _is_in(pair: BandedPair, forbidden: Sequence[set[str]]) -> bool:
    """Whether one of the sets of ids has ops of two of the regions."""
    sides = [{id_of(name) for name in side} for side in _members(pair)]
    return any(sum(bool(ids & side) for side in sides) > 1 for ids in forbidden)


def _without_follower(ctx: CompilerContext, pair: BandedPair, forbidden: Sequence[set[str]]) -> BandedPair:
    """`pair`, without a follower that must stay apart."""
    if pair.follower is None or (_is_answered(ctx, pair) and not _is_in(pair, forbidden)):
        return pair
    return replace(pair, follower=None)


# which ----------------------------------------------------------------------------------------------------------------


def _faster(
    ctx: CompilerContext, pairs: Sequence[BandedPair], most_slower: float | None, shapes: ShapeAnalysis
) -> list[Banded]:
    """The windows channel by channel that take no more than `most_slower` of the time apart longer (None: what is as
    good as apart). Why others stay apart goes into the decisions."""
    chosen = list[Banded]()
    for pair in pairs:
        choice = choose_cached_bands(sizes_of(pair, shapes, ctx.target), ctx.target)
        why = _slower(choice, most_slower) or (None if _is_apart(pair, chosen) else TAKEN)
        if isinstance(choice, BandChoice):
            why = why or bands_refusal(ctx, pair, choice.cut, shapes)
            chosen += [] if why is not None else [Banded(pair, choice)]
        if why is not None:
            _decide(ctx, pair, partial(_missed, why=why))
    return chosen


def _slower(choice: BandChoice | Refusal, most_slower: float | None) -> Refusal | None:
    """Why there are no bands around a window, or none that are fast enough."""
    if isinstance(choice, Refusal) or choice.is_within(most_slower):
        return choice if isinstance(choice, Refusal) else None
    bound = (choice.most_slower if most_slower is None else most_slower) * choice.whole_ns / 1000
    allowed = f"{bound:.1f} us are allowed" if bound > 0 else f"{-bound:.1f} us must be saved"
    detail = f"{choice.heights} would take {choice.loss_ns / 1000:.1f} us longer, {allowed}"
    return Refusal("unprofitable", detail, choice.numbers)


def _missed(decision: Decision, why: Refusal | WhyNot) -> Decision:
    """`decision`, with the answer of bands in place of what the rules said last, and that beside it."""
    if decision.rule == FuseRowBandsPass.name:
        return decision
    code = why.code if why.code in WHY_NOT_CODES else "unprofitable"
    detail = f"in bands of rows: {why.detail} ({decision.rule}: {decision.code}: {decision.detail})"
    return msgspec.structs.replace(
        decision, rule=FuseRowBandsPass.name, code=code, detail=detail, at="", numbers=dict(why.numbers)
    )


def _at_peaks(
    ctx: CompilerContext, lives: LiveResults, pairs: Sequence[BandedPair], shapes: ShapeAnalysis
) -> list[Banded]:
    """Those with which least memory is in use at once, scratch included: the one at the peak that costs least, and then
    again, until nothing there can be fused."""
    (least, there), chosen, best = lives.peak(), list[Banded](), 0
    refused = dict[SSAValue, Refusal | WhyNot]()
    for _ in rounds("dispatches over bands", most=len(pairs) + 1):
        able = _able(ctx, [pair for pair in pairs if pair.image in there and _is_apart(pair, chosen)], shapes, refused)
        if not able:
            break
        chosen.append(min(able, key=lambda one: one.choice.loss_ns))
        lives.keep_inside(chosen[-1].pair.image)
        peak, there = lives.peak()
        needed = peak + _scratch(ctx, chosen)
        if needed < least:
            least, best = needed, len(chosen)
    for one in chosen[best:]:
        refused[one.pair.image] = NOT_AT_PEAK
    for pair in pairs:
        if (why := refused.get(pair.image)) is not None:
            _note(ctx, pair, f"stored as a whole ({why.code}: {why.detail})")
            _decide(ctx, pair, partial(_missed, why=why))
    return chosen[:best]


def _scratch(ctx: CompilerContext, chosen: Sequence[Banded]) -> int:
    """What all threads keep at the most, packed operands included."""
    return ctx.target.threads * (max(one.choice.scratch_bytes for one in chosen) + ctx.target.costs.packed_bytes)


def _is_apart(pair: BandedPair, chosen: Sequence[Banded]) -> bool:
    """Whether none of its regions is in a pair that was chosen."""
    taken = {rows.region for one in chosen for rows in one.pair.parts}
    return taken.isdisjoint(rows.region for rows in pair.parts)


def _able(
    ctx: CompilerContext, pairs: Sequence[BandedPair], shapes: ShapeAnalysis, refused: dict[SSAValue, Refusal | WhyNot]
) -> list[Banded]:
    """The pairs that have bands and that the target takes; why others are `refused`, by the image."""
    found = list[Banded]()
    for pair in pairs:
        choice = choose_bands(pair, shapes, ctx.target)
        why = choice if isinstance(choice, Refusal) else bands_refusal(ctx, pair, choice.cut, shapes)
        if why is not None:
            refused[pair.image] = why
        elif isinstance(choice, BandChoice):
            found.append(Banded(pair, choice))
    return found


# how ------------------------------------------------------------------------------------------------------------------


def _fuse(ctx: CompilerContext, one: Banded, shapes: ShapeAnalysis) -> None:
    pair, choice = one.pair, one.choice
    saved = 2 * assumed_size(num_bytes(pair.image, shapes))
    _note(ctx, pair, f"made in {choice.heights} by what reads it")
    numbers = {
        "bytes_saved": float(saved),
        "scratch_bytes": float(choice.scratch_bytes),
        "recompute": round(choice.recompute, 3),
    }
    _decide(ctx, pair, partial(_fused, numbers=numbers))
    put(banded_region(pair, choice.cut, shapes), pair)


def _fused(decision: Decision, numbers: Mapping[str, float]) -> Decision:
    detail = "what lies between them is made in bands of rows"
    return msgspec.structs.replace(
        decision, rule=FuseRowBandsPass.name, verdict="fused", code="fused", detail=detail, at="", numbers=dict(numbers)
    )


def _note(ctx: CompilerContext, pair: BandedPair, text: str) -> None:
    made = pair.maker.results[0].owner
    name = node_names(made) if not isinstance(made, Block) else None
    ctx.records.notes.append(f"{name or region_name(pair.maker.region)}: {text}")


EXPORT = FuseRowBandsPass
