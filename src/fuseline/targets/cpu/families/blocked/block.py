"""How large the blocks of a blocked dispatch are: a pure function of shapes, machine and threads.

A large block reads weights, and packs what it multiplies with, for many points at once; a small one keeps what lies
between the sub-kernels in the second-level cache and leaves enough blocks to share out. Every combination of a few
sizes per loop is priced, the cheapest is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from types import MappingProxyType
from typing import Any

from fuseline.dispatch.loop_ref import LoopRef
from fuseline.ir.dim import Dim, upper_bound
from fuseline.ir.rounds import rounds
from fuseline.targets.cpu.families.blocked.block_price import BlockPrice
from fuseline.targets.cpu.families.blocked.block_sizes import block_sizes
from fuseline.targets.cpu.families.blocked.dispatch import BlockedDispatch
from fuseline.targets.cpu.families.blocked.sub_kernels import LiveRange
from fuseline.targets.cpu.families.blocked.tiles import Tile
from fuseline.targets.cpu.families.family import NEVER_RUNS, Policy
from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.target import Refusal

STREAMED_SIZES = (64, 128, 256, 512)
"""Points per block along a streamed loop."""

MOST_COMBINATIONS = 512
"""More are not all tried."""

AS_CHEAP = 1.02
"""Prices that are closer than this say nothing: of such blocks the one that keeps least in scratch is taken."""


@dataclass(frozen=True, slots=True)
class TileSizes:
    """The tiles of the grid, outermost first, then that of the streamed loop; loops that a block takes in full have
    none.

    `price` orders choices: bytes too many in scratch, then cycles.
    """

    tiles: dict[LoopRef, Tile]
    price: tuple[float, float]


def choose_tiles(
    dispatch: BlockedDispatch,
    live: Sequence[LiveRange],
    machine: Machine,
    policy: Policy,
    streamed: LoopRef | None = None,
    given: Mapping[LoopRef, int] = MappingProxyType({}),
) -> TileSizes | Refusal:
    """The best tiles. `live` are the values between sub-kernels, `streamed` is a loop that runs inside, block by
    block; `given` are sizes that are no choice."""
    axes = (*dispatch.grid, streamed) if streamed is not None else dispatch.grid
    extents = {axis: dispatch.axes.extents[axis] for axis in axes}
    if 0 in extents.values():
        return NEVER_RUNS
    model = BlockPrice(dispatch, axes, live, machine, policy, streamed)
    choices = [
        [given[axis]]
        if axis in given
        else block_sizes(extents[axis], model.contiguous.get(axis, 0), machine, whole=model.has_window)
        if axis != streamed
        else _streamed(extents[axis])
        for axis in axes
    ]
    if not all(choices):
        return Refusal("short", "the streamed loop is no longer than a block of it")

    def price(sizes: tuple[int, ...]) -> tuple[float, float]:
        return model.price(dict(zip(axes, sizes, strict=True)))

    starts = [[*choices[:-1], [size]] for size in choices[-1]] if streamed is not None else [choices]
    best = min(
        (_cheapest(start, lambda sizes: (*price(sizes), sizes)) for start in starts),
        key=lambda sizes: (*price(sizes), sizes),
    )
    around = [one for one in _around(choices, best) if _is_as_cheap(price(one), price(best))]
    best = min(around, key=lambda sizes: (model.held(dict(zip(axes, sizes, strict=True))), *price(sizes), sizes))
    return TileSizes(_tiles(axes, extents, best), price(best))


def _is_as_cheap(price: tuple[float, float], best: tuple[float, float]) -> bool:
    return price[0] <= best[0] and price[1] <= AS_CHEAP * best[1]


def _around(choices: Sequence[Sequence[int]], best: tuple[int, ...]) -> list[tuple[int, ...]]:
    """A choice, and those that differ from it along one loop."""
    return [best, *((*best[:i], size, *best[i + 1 :]) for i, sizes in enumerate(choices) for size in sizes)]


def _streamed(extent: Dim) -> list[int]:
    """Sizes that leave more than one block."""
    bound = upper_bound(extent)
    return [size for size in STREAMED_SIZES if bound is None or size < bound]


def _cheapest(choices: Sequence[Sequence[int]], price: Callable[[tuple[int, ...]], Any]) -> tuple[int, ...]:
    """The best of all combinations, or, where they are many, what no change along one loop makes better."""
    if prod(len(sizes) for sizes in choices) <= MOST_COMBINATIONS:
        return min(product(*choices), key=price, default=())
    best = tuple(sizes[-1] for sizes in choices)
    for _ in rounds("the search for a block", most=prod(len(sizes) for sizes in choices)):
        found = min(_around(choices, best), key=price)
        if price(found) >= price(best):  # an equal one would lead back
            break
        best = found
    return best


def _tiles(grid: Sequence[LoopRef], extents: Mapping[LoopRef, Dim], sizes: Sequence[int]) -> dict[LoopRef, Tile]:
    tiles: dict[LoopRef, Tile] = {}
    for axis, size in zip(grid, sizes, strict=True):
        extent, number = extents[axis], len(tiles)
        bound = upper_bound(extent)
        if bound is not None and size >= bound:
            continue
        whole = size == 1 or (isinstance(extent, int) and extent % size == 0)
        tiles[axis] = Tile(extent, size, f"block_{number}", None if whole else f"extent_{number}")
    return tiles
