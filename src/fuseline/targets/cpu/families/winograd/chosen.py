"""Minimal filtering that is chosen from outside: within the same error bound and memory as the choice of the model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from fuseline.ir.kernel_choice import DIRECT, KernelChoice
from fuseline.targets.cpu.families.family import Alternative, Plan, Policy
from fuseline.targets.cpu.families.winograd.choice import (
    SCRATCH_BYTES,
    Weighed,
    best_blocking,
    blocking,
    direct_cycles,
    growth,
    refused_filtering,
    scratch_bytes,
    tile_count,
    weighed,
    winograd_cycles,
)
from fuseline.targets.cpu.families.winograd.loops import WinogradLoops
from fuseline.targets.cpu.families.winograd.plan import Blocking, WinogradPlan, winograd_plan
from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.target import Refusal

MOST_FILTERINGS, MOST_BLOCKINGS = 2, 2
"""Tile sizes that are offered beside the chosen one, and blockings of the chosen one, the best by the model."""


def plan_chosen(loops: WinogradLoops, machine: Machine, policy: Policy, choice: KernelChoice) -> WinogradPlan | Refusal:
    """The plan that follows a choice, or why there is none."""
    if not choice.filtering:
        return Refusal("choice-direct", f"{choice.text}: a direct convolution is asked for")
    found = _asked(loops, machine, policy, choice)
    if isinstance(found, Refusal):
        return found
    if growth(loops, found) > policy.filter_growth:
        return Refusal("choice-memory", f"{choice.text}: there is no memory for so large a transformed filter")
    return replace(winograd_plan(loops, found, machine), choice=choice.text)


def _asked(loops: WinogradLoops, machine: Machine, policy: Policy, choice: KernelChoice) -> Blocking | Refusal:
    """The blocking of a choice."""
    refused = refused_filtering(loops, choice.filtering, policy)
    if refused is not None:
        return Refusal(f"choice-{refused.code}", f"{choice.text}: {refused.detail}")
    if not choice.blocks:
        return best_blocking(loops, choice.filtering, machine, policy).blocking
    tiles, columns = choice.blocks
    found = blocking(loops, choice.filtering, tiles, columns, machine)
    total, width = tile_count(loops, choice.filtering), found.panels * found.tile.vectors * machine.lanes("f32")
    if tiles > total or width != columns:
        message = f"{choice.text}: there are {total} tiles, and passes of whole panels, such as {width} columns"
        return Refusal("choice-blocks", message)
    if scratch_bytes(loops, found, machine) > SCRATCH_BYTES:
        return Refusal("choice-blocks", f"{choice.text}: such a block does not fit the scratch")
    return found


def growth_asked(loops: WinogradLoops, machine: Machine, policy: Policy, choice: KernelChoice) -> float | None:
    """How many times as large as the filter its transformed one is that a choice asks for; None where there is none."""
    found = _asked(loops, machine, policy, choice) if choice.filtering else None
    return growth(loops, found) if isinstance(found, Blocking) else None


def winograd_alternatives(loops: WinogradLoops, plan: Plan, machine: Machine, policy: Policy) -> Iterator[Alternative]:
    """Filterings in place of the way that a convolution is planned, other blocks of the same one, and the direct
    way."""
    own = winograd_cycles(loops, plan.blocking, machine, policy.threads) if isinstance(plan, WinogradPlan) else None
    direct = direct_cycles(loops, machine, policy.threads)
    if own is not None:
        yield Alternative(DIRECT, direct / own)
    outputs = plan.blocking.axes[0].outputs if isinstance(plan, WinogradPlan) else 0
    options = sorted(weighed(loops, machine, policy), key=lambda one: one.cycles)
    others = [one for one in options if one.blocking.axes[0].outputs != outputs]
    texts = [(KernelChoice(one.blocking.axes[0].outputs), one) for one in others[:MOST_FILTERINGS]]
    if isinstance(plan, WinogradPlan):
        texts += [(_spelled(one.blocking, machine), one) for one in _blockings(loops, plan, machine, policy)]
    for choice, one in texts:
        yield Alternative(choice.text, one.cycles / (own or direct))


def _blockings(loops: WinogradLoops, plan: WinogradPlan, machine: Machine, policy: Policy) -> Iterator[Weighed]:
    """Other blocks of tiles for the filtering of a plan, half and twice as many, all passes in a workgroup."""
    own, columns = plan.blocking, plan.pass_width
    total = tile_count(loops, own.axes[0].outputs)
    wanted = [tiles for tiles in (-(-own.tiles // 2), min(2 * own.tiles, total)) if tiles != own.tiles]
    found = [blocking(loops, own.axes[0].outputs, tiles, columns, machine) for tiles in wanted]
    fitting = [b for b in found if scratch_bytes(loops, b, machine) <= SCRATCH_BYTES and _width(b, machine) == columns]
    yield from islice((Weighed(winograd_cycles(loops, b, machine, policy.threads), b) for b in fitting), MOST_BLOCKINGS)


def _spelled(b: Blocking, machine: Machine) -> KernelChoice:
    return KernelChoice(b.axes[0].outputs, blocks=(b.tiles, _width(b, machine)))


def _width(b: Blocking, machine: Machine) -> int:
    """Columns of a pass."""
    return b.panels * b.tile.vectors * machine.lanes("f32")
