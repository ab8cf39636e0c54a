"""Several heavy ops and reductions over one grid of loops: a workgroup is a block of its points, evaluated member after
member.

    matmul(m, n) -> mean(m) -> normalise(m, n)            for blocks of m:       the rows of the product lie in scratch
    QK^T(h, q, k) -> softmax(h, q, k) -> PV(h, q, d)      for blocks of (h, q):  the scores lie in scratch
    gate(m, n) -> silu -> multiply <- up(m, n)            for blocks of (m, n)

The dispatch is cut into sub-kernels (`sub_kernels.py`), each sub-kernel becomes an entry function over block-sized
tensors (`entry.py`), which any other family plans and emits in its own way, inlined into the one kernel: what it takes
for bindings are the dispatch's, or buffers in scratch.

What it takes: any number of reductions and elementwise ops, a contraction, convolution or pooling among them, whose
results leave as they are, reshaped, or as parts of one concat. Loops are blocked that every reduction and everything
behind one has, once, as a parallel loop, and along which each value made inside is read in step (no window, gather,
regrouping or transposition onto another shared loop); arguments, and what is made of arguments alone, may be read in
any way. Other loops run in full inside a block; what lies between sub-kernels must fit `MOST_SCRATCH_BYTES`. The loop
of a softmax whose weights are summed up by a contraction may also be met block by block (`streaming.py`): then it may
have any length.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from fuseline.analysis.structured import HEAVY, kind
from fuseline.dispatch.view import DispatchView
from fuseline.ir import dim as d
from fuseline.targets.cpu.families.asked import Answer, built_as_asked
from fuseline.targets.cpu.families.blocked.band_image import (
    band_image,
    in_bands_of_one,
    is_one_band,
    live_throughout,
    makers_of_rows,
)
from fuseline.targets.cpu.families.blocked.block import choose_tiles
from fuseline.targets.cpu.families.blocked.block_price import MOST_SCRATCH_BYTES
from fuseline.targets.cpu.families.blocked.dispatch import blocked_dispatch
from fuseline.targets.cpu.families.blocked.entry import SubKernelEntry
from fuseline.targets.cpu.families.blocked.kept_rows import apart
from fuseline.targets.cpu.families.blocked.kernel import BlockedKernel
from fuseline.targets.cpu.families.blocked.phases import streamed_phases
from fuseline.targets.cpu.families.blocked.plan import (
    BlockedPlan,
    Candidate,
    result_targets,
    scratch_bytes,
    scratch_elements,
    write_sub_kernels,
)
from fuseline.targets.cpu.families.blocked.planned_sub_kernels import (
    PlannedSubKernel,
    asked_layouts,
    planned_sub_kernels,
)
from fuseline.targets.cpu.families.blocked.shared_plan import shared_blocked_plans
from fuseline.targets.cpu.families.blocked.streaming import Streamed, streamed
from fuseline.targets.cpu.families.blocked.sub_kernels import live_ranges, sub_kernels_of
from fuseline.targets.cpu.families.blocked.tiles import Tiling
from fuseline.targets.cpu.families.family import Family, Plan, Policy, Refusal, Shared
from fuseline.targets.cpu.isa.description import Machine


class BlockedFamily(Family):
    """Takes dispatches of two sub-kernels or more with a heavy op among them, whose values between sub-kernels fit the
    scratch block by block."""

    name = "blocked"
    kernel_type = BlockedKernel

    def accepts(self, view: DispatchView, machine: Machine) -> Plan | Refusal:
        """A plan, or why there is none."""
        candidates = [self._whole(view, machine), *(self._streamed(one, machine) for one in streamed(view))]
        found = [candidate for candidate in candidates if isinstance(candidate, Candidate)]
        if not found:
            assert isinstance(candidates[0], Refusal)
            return candidates[0]
        best = min(found, key=lambda candidate: candidate.tile_sizes.price)
        plan = self._plan(best, machine)
        return self._keeping_nothing(view, machine, plan) if best.kept_image and isinstance(plan, Refusal) else plan

    def _keeping_nothing(self, view: DispatchView, machine: Machine, why: Refusal) -> Plan | Refusal:
        """A plan that keeps no rows from band to band, because of `why`."""
        candidate = self._whole(view, machine, keeps=False)
        plan = self._plan(candidate, machine) if isinstance(candidate, Candidate) else candidate
        said = f"none ({why.code}: {why.detail})"
        return replace(plan, notes={**plan.notes, "kept": said}) if isinstance(plan, Plan) else plan

    def _whole(self, view: DispatchView, machine: Machine, *, keeps: bool = True) -> Candidate | Refusal:
        """Loops outside of the grid run in full inside each block. `keeps`: whether rows may go from band to band."""
        dispatch = blocked_dispatch(view)
        if not any(dispatch.heavy(op) for op in dispatch.placed):
            return Refusal("no-root", "no contraction, convolution or pooling")
        sub_kernels = sub_kernels_of(dispatch)
        if len(sub_kernels) < 2:
            return Refusal("one-unit", "everything follows one root point by point")
        image = band_image(dispatch, sub_kernels, keeps=keeps)
        live = live_throughout(image, live_ranges(dispatch, sub_kernels), len(sub_kernels) - 1)
        tile_sizes = choose_tiles(dispatch, live, machine, self.policy, given=in_bands_of_one(image))
        if isinstance(tile_sizes, Refusal):
            return tile_sizes
        size = scratch_bytes(Tiling(dispatch, tile_sizes.tiles), live)
        if size is None or size > MOST_SCRATCH_BYTES:
            return Refusal(
                "scratch", f"a block keeps {size if size is not None else 'an unbounded number of'} bytes between units"
            )
        if image is not None and not is_one_band(image, tile_sizes.tiles):
            image = None
        return Candidate(dispatch, tuple(sub_kernels), tuple(live), tile_sizes, image=image)

    def _streamed(self, rewritten: Streamed, machine: Machine) -> Candidate | Refusal:
        """A softmax and the product behind it meet their common loop block by block."""
        phases = streamed_phases(rewritten)
        if phases is None:
            return Refusal("no-stream", "an op needs more of the loop than a block")
        live = phases.live()
        tile_sizes = choose_tiles(phases.dispatch, live, machine, self.policy, phases.axis)
        if isinstance(tile_sizes, Refusal):
            return tile_sizes
        size = scratch_bytes(Tiling(phases.dispatch, tile_sizes.tiles), live)
        if size is None or size > MOST_SCRATCH_BYTES:
            return Refusal("scratch", "a block keeps too many bytes between units")
        return Candidate(phases.dispatch, phases.sub_kernels, tuple(live), tile_sizes, phases)

    def _plan(self, candidate: Candidate, machine: Machine) -> Plan | Refusal:
        view, tiling, tiles = candidate.dispatch.view, candidate.tiling, candidate.tiles
        targets = result_targets(candidate.dispatch, tiling)
        if isinstance(targets, Refusal):
            return targets
        entries = write_sub_kernels(candidate, targets)
        refused: dict[str, str] = {}
        planned = self._planned(candidate, entries, machine, refused)
        if isinstance(planned, Refusal):
            return planned
        buffers = {
            target.value: scratch_elements(tiling, target.value) or 0
            for sub_kernel in planned
            for target in sub_kernel.targets
            if target.position is None
        }
        notes = {
            "units": "+".join(sub_kernel.family.name for sub_kernel in planned),
            "block": "x".join(str(tile.size) for tile in tiles) or "all",
            "scratch": scratch_bytes(tiling, candidate.live),
            "refused_units": refused,
        }
        if candidate.streamed is not None:
            notes["streamed"] = str(candidate.streamed.tile.size)
        if candidate.kept_image is not None:
            notes["kept"] = f"{candidate.kept_image.kept} of {candidate.kept_image.rows} rows"
        return BlockedPlan(
            view=view, workgroups=d.product(tile.count for tile in tiles),
            constant_layouts=asked_layouts(view, planned),
            extra_constants=tuple(extra for one in planned for extra in one.plan.extra_constants), notes=notes,
            sub_kernels=tuple(planned), tiles=tiles, buffers=buffers, last_reader=candidate.last_readers(planned),
            streamed=candidate.streamed, image=candidate.image,
        )  # fmt: skip

    def _planned(
        self, candidate: Candidate, entries: Sequence[SubKernelEntry], machine: Machine, refused: dict[str, str]
    ) -> list[PlannedSubKernel] | Refusal:
        """The sub-kernels; or why the first ones cannot keep rows, as soon as that is known."""
        planned = list[PlannedSubKernel]()
        for one in planned_sub_kernels(
            candidate.dispatch.view, entries, lambda sub_kernel: self._choose(sub_kernel, machine, refused)
        ):
            planned.append(one)
            why = apart(makers_of_rows(candidate.image, planned))
            if why is not None:
                return why
        return planned

    def _choose(self, view: DispatchView, machine: Machine, refused: dict[str, str]) -> tuple[Family, Plan]:
        """The family and the plan of a sub-kernel, as something is asked of it from outside, where that can be
        followed; `refused` is told why no family takes a root."""
        found, why = built_as_asked(
            view, self.policy, lambda policy: self._offered(view, machine, policy), lambda one: one.answer
        )
        assert found is not None
        refused.update(found.refused)
        return found.family, found.plan if why is None else replace(found.plan, unfollowed=why)

    def _offered(self, view: DispatchView, machine: Machine, policy: Policy) -> _Offered:
        """The first other family that takes a sub-kernel; the last takes everything."""
        from fuseline.targets.cpu.families import families

        others = [family for family in families(policy) if not isinstance(family, BlockedFamily)]
        why: dict[str, str] = {}
        for family in others:
            plan = family.accepts(view, machine)
            if not isinstance(plan, Refusal):
                fell = family is others[-1] and view.root is not None and kind(view.root) in HEAVY
                return _Offered(family, plan, Answer(plan, family.name, why.values()), why if fell else {})
            why[family.name] = f"{plan.code}: {plan.detail}"
        raise AssertionError("the loop nest accepts everything")

    def shared(self, plans: Sequence[Plan], machine: Machine) -> Sequence[Shared]:
        """Plans whose sub-kernels have forms in common."""
        return shared_blocked_plans([plan for plan in plans if isinstance(plan, BlockedPlan)], machine)


class _Offered(NamedTuple):
    """A sub-kernel's family and plan, what is said of choices, and why no family but the loop nest takes its root."""

    family: Family
    plan: Plan
    answer: Answer
    refused: Mapping[str, str]


EXPORT = BlockedFamily
