"""Several heavy ops and reductions over one grid of loops: a workgroup is a block of its points, evaluated member after
member.

    matmul(m, n) -> mean(m) -> normalise(m, n)            for blocks of m:       the rows of the product lie in scratch
    QK^T(h, q, k) -> softmax(h, q, k) -> PV(h, q, d)      for blocks of (h, q):  the scores lie in scratch
    gate(m, n) -> silu -> multiply <- up(m, n)            for blocks of (m, n)

The dispatch is cut into units (`units.py`), each unit becomes an entry function over block-sized tensors (`entry.py`),
which any other family plans and emits in its own way, inlined into the one kernel: what it takes for bindings are the
dispatch's, or buffers in scratch.

What it takes: any number of reductions and elementwise ops, a contraction, convolution or pooling among them, whose
results leave as they are, reshaped, or as parts of one concat. Loops are blocked that every reduction and everything
behind one has, once, as a parallel loop, and along which each value made inside is read in step (no window, gather,
regrouping or transposition onto another shared loop); arguments, and what is made of arguments alone, may be read in
any way. Other loops run in full inside a block; what lies between units must fit `MOST_SCRATCH_BYTES`. The loop of a
softmax whose weights are summed up by a contraction may also be met block by block (`streaming.py`): then it may have
any length.
"""

from __future__ import annotations

from fuseline.analysis.structured import kind
from fuseline.dispatch.view import DispatchView
from fuseline.ir import dim as d
from fuseline.targets.cpu.families.blocked.block import MOST_SCRATCH_BYTES, choose_tiles
from fuseline.targets.cpu.families.blocked.kernel import BlockedKernel
from fuseline.targets.cpu.families.blocked.phases import stream_of
from fuseline.targets.cpu.families.blocked.plan import (
    BlockedPlan,
    Form,
    plan_units,
    scratch_bytes,
    scratch_elements,
    sinks_of,
    write_units,
)
from fuseline.targets.cpu.families.blocked.streaming import Streamed, streamed
from fuseline.targets.cpu.families.blocked.structure import HEAVY, structure_of
from fuseline.targets.cpu.families.blocked.tiles import Tiling
from fuseline.targets.cpu.families.blocked.units import kept_values, units_of
from fuseline.targets.cpu.families.family import Family, Plan, Refusal
from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder


class BlockedFamily(Family):
    """Takes dispatches of two units or more with a heavy op among them, whose values between units fit the scratch
    block by block."""

    name = "blocked"

    def accepts(self, view: DispatchView, machine: Machine) -> Plan | Refusal:
        """A plan, or why there is none."""
        forms = [self._whole(view, machine), *(self._streamed(one, machine) for one in streamed(view))]
        found = [form for form in forms if isinstance(form, Form)]
        if not found:
            assert isinstance(forms[0], Refusal)
            return forms[0]
        return self._plan(min(found, key=lambda form: form.choice.price), machine)

    def _whole(self, view: DispatchView, machine: Machine) -> Form | Refusal:
        """Loops outside of the grid run in full inside each block."""
        structure = structure_of(view)
        if not any(structure.heavy(op) for op in structure.placed):
            return Refusal("no-root", "no contraction, convolution or pooling")
        units = units_of(structure)
        if len(units) < 2:
            return Refusal("one-unit", "everything follows one root point by point")
        kept = kept_values(structure, units)
        choice = choose_tiles(structure, kept, machine, self.policy)
        if isinstance(choice, Refusal):
            return choice
        size = scratch_bytes(Tiling(structure, choice.tiles), kept)
        if size is None or size > MOST_SCRATCH_BYTES:
            return Refusal(
                "scratch", f"a block keeps {size if size is not None else 'an unbounded number of'} bytes between units"
            )
        return Form(structure, tuple(units), tuple(kept), choice)

    def _streamed(self, rewritten: Streamed, machine: Machine) -> Form | Refusal:
        """A softmax and the product behind it meet their common loop block by block."""
        stream = stream_of(rewritten)
        if stream is None:
            return Refusal("no-stream", "an op needs more of the loop than a block")
        kept = stream.kept()
        choice = choose_tiles(stream.structure, kept, machine, self.policy, stream.axis)
        if isinstance(choice, Refusal):
            return choice
        size = scratch_bytes(Tiling(stream.structure, choice.tiles), kept)
        if size is None or size > MOST_SCRATCH_BYTES:
            return Refusal("scratch", "a block keeps too many bytes between units")
        return Form(stream.structure, stream.units, tuple(kept), choice, stream)

    def _plan(self, form: Form, machine: Machine) -> Plan | Refusal:
        view, tiling, tiles = form.structure.view, form.tiling, form.tiles
        sinks = sinks_of(form.structure, tiling)
        if isinstance(sinks, Refusal):
            return sinks
        entries = write_units(form, sinks)
        refused: dict[str, str] = {}
        planned, layouts, extras = plan_units(view, entries, lambda unit: self._choose(unit, machine, refused))
        buffers = {
            sink.value: scratch_elements(tiling, sink.value) or 0
            for unit in planned
            for sink in unit.sinks
            if sink.position is None
        }
        notes = {
            "units": "+".join(unit.family.name for unit in planned),
            "block": "x".join(str(tile.size) for tile in tiles) or "all",
            "scratch": scratch_bytes(tiling, form.kept),
            "refused_units": refused,
        }
        if form.streamed is not None:
            notes["streamed"] = str(form.streamed.tile.size)
        return BlockedPlan(
            view=view, workgroups=d.product(tile.count for tile in tiles), constant_layouts=layouts,
            extra_constants=tuple(extras), notes=notes,
            units=tuple(planned), tiles=tiles, buffers=buffers, last_reader=form.last_readers(planned),
            streamed=form.streamed,
        )  # fmt: skip

    def _choose(self, view: DispatchView, machine: Machine, refused: dict[str, str]) -> tuple[Family, Plan]:
        """The first other family that takes a unit; the last takes everything, and of a root it is told why."""
        from fuseline.targets.cpu.families import families

        others = [family for family in families(self.policy) if not isinstance(family, BlockedFamily)]
        why: dict[str, str] = {}
        for family in others:
            plan = family.accepts(view, machine)
            if not isinstance(plan, Refusal):
                if family is others[-1] and view.root is not None and kind(view.root) in HEAVY:
                    refused.update(why)
                return family, plan
            why[family.name] = f"{plan.code}: {plan.detail}"
        raise AssertionError("the loop nest accepts everything")

    def emit(self, plan: Plan, kernel: KernelBuilder) -> None:
        """A loop over blocks, one unit after the other inside."""
        assert isinstance(plan, BlockedPlan)
        BlockedKernel(plan, kernel).emit()


EXPORT = BlockedFamily
