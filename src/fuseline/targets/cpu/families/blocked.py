"""Several heavy ops and reductions over one grid of loops: a workgroup is a block of its points, evaluated member after member.

    matmul(m, n) -> mean(m) -> normalise(m, n)            for blocks of m:       the rows of the product lie in scratch
    QK^T(h, q, k) -> softmax(h, q, k) -> PV(h, q, d)      for blocks of (h, q):  the scores lie in scratch
    gate(m, n) -> silu -> multiply <- up(m, n)            for blocks of (m, n)

The dispatch is cut into units (`blocked_units`), each unit becomes an entry function over block-sized tensors (`blocked_entry`), which any other
family plans and emits in its own way, inlined into the one kernel: what it takes for bindings are the dispatch's, or buffers in scratch.

What it takes: any number of reductions and elementwise ops, a contraction, convolution or pooling among them, whose results leave as they are,
reshaped, or as parts of one concat. Loops are blocked that every reduction and everything behind one has, once, as a parallel loop, and along
which each value made inside is read in step (no window, gather, regrouping or transposition onto another shared loop); arguments, and what is
made of arguments alone, may be read in any way. Other loops run in full inside a block; what lies between units must fit `MOST_SCRATCH_BYTES`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.ir import BlockArgument, SSAValue

from fuseline.analysis.dispatch_view import DispatchView
from fuseline.ir import dim as d
from fuseline.targets.cpu.access import Frame, dtype_of
from fuseline.targets.cpu.families.blocked_block import MOST_SCRATCH_BYTES, choose_tiles
from fuseline.targets.cpu.families.blocked_plan import (
    BlockedPlan,
    PlannedUnit,
    Sink,
    plan_units,
    scratch_bytes,
    scratch_elements,
    sinks_of,
    write_units,
)
from fuseline.targets.cpu.families.blocked_structure import structure_of
from fuseline.targets.cpu.families.blocked_tiles import Tile, Tiling
from fuseline.targets.cpu.families.blocked_units import kept_values, units_of
from fuseline.targets.cpu.families.family import Family, Plan, Refusal
from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.kernel_ir.builder import Inlined, KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import MemRef, Operand


class BlockedFamily(Family):
    """Takes dispatches of two units or more with a heavy op among them, whose values between units fit the scratch block by block."""

    name = "blocked"

    def accepts(self, view: DispatchView, machine: Machine) -> Plan | Refusal:
        """A plan, or why there is none."""
        structure = structure_of(view)
        if not any(structure.heavy(op) for op in structure.placed):
            return Refusal("no-root", "no contraction, convolution or pooling")
        units = units_of(structure)
        if len(units) < 2:
            return Refusal("one-unit", "everything follows one root point by point")
        kept = kept_values(structure, units)
        tiles = choose_tiles(structure, kept, machine, self.policy)
        if isinstance(tiles, Refusal):
            return tiles
        tiling = Tiling(structure, tiles)
        sinks = sinks_of(structure, tiling)
        if isinstance(sinks, Refusal):
            return sinks
        size = scratch_bytes(tiling, kept)
        if size is None or size > MOST_SCRATCH_BYTES:
            return Refusal("scratch", f"a block keeps {size if size is not None else 'an unbounded number of'} bytes between units")
        entries = write_units(tiling, units, sinks)
        planned, layouts, extras = plan_units(view, entries, lambda unit: self._choose(unit, machine))
        buffers = {sink.value: scratch_elements(tiling, sink.value) or 0 for unit in planned for sink in unit.sinks if sink.position is None}
        order = tuple(tiles.values())
        notes = {
            "units": "+".join(unit.family.name for unit in planned),
            "block": "x".join(str(tile.size) for tile in order) or "all",
            "scratch": size,
        }
        return BlockedPlan(
            view=view, workgroups=d.product(tile.count for tile in order), constant_layouts=layouts, extra_constants=tuple(extras), notes=notes,
            units=tuple(planned), tiles=order, buffers=buffers,
            last_reader={value: i for i, unit in enumerate(planned) for value in unit.arguments},
        )  # fmt: skip

    def _choose(self, view: DispatchView, machine: Machine) -> tuple[Family, Plan]:
        """The first other family that takes a unit; the last takes everything."""
        from fuseline.targets.cpu.families import families

        for family in families(self.policy):
            if isinstance(family, BlockedFamily):
                continue
            plan = family.accepts(view, machine)
            if not isinstance(plan, Refusal):
                return family, plan
        raise AssertionError("the loop nest accepts everything")

    def emit(self, plan: Plan, kernel: KernelBuilder) -> None:
        """A loop over blocks, one unit after the other inside."""
        assert isinstance(plan, BlockedPlan)
        BlockedKernel(plan, kernel).emit()


@dataclass(eq=False)
class _Buffers:
    """Scratch buffers by value; one whose value is dead serves a later one."""

    kernel: KernelBuilder
    held: dict[SSAValue, MemRef] = field(default_factory=dict[SSAValue, MemRef])
    free: list[MemRef] = field(default_factory=list[MemRef])

    def take(self, value: SSAValue, elements: int) -> MemRef:
        """A buffer for `value`."""
        dtype = dtype_of(value.type)
        fitting = [memory for memory in self.free if memory.dtype == dtype and isinstance(memory.extent, int) and memory.extent >= elements]
        memory = min(fitting, key=_extent, default=None)
        if memory is None:
            memory = self.kernel.scratch(dtype, elements)
        else:
            self.free.remove(memory)
        self.held[value] = memory
        return memory

    def release(self, value: SSAValue) -> None:
        """Nobody reads `value` any more."""
        memory = self.held.pop(value, None)
        if memory is not None:
            self.free.append(memory)


def _extent(memory: MemRef) -> int:
    assert isinstance(memory.extent, int)
    return memory.extent


class BlockedKernel:
    """Builds the kernel of a plan."""

    def __init__(self, plan: BlockedPlan, kernel: KernelBuilder) -> None:
        self.plan, self.kernel = plan, kernel
        self.frame = Frame(kernel, plan.view)
        self.bindings = self._bindings()

    def _bindings(self) -> list[dict[int, int | MemRef]]:
        """What the bindings of each unit are, every buffer made before the first block."""
        buffers, out = _Buffers(self.kernel), list[dict[int, int | MemRef]]()
        for number, unit in enumerate(self.plan.units):
            found: dict[int, int | MemRef] = {i: self._argument(value, buffers) for i, value in enumerate(unit.arguments)}
            for i, sink in enumerate(unit.sinks):
                found[len(unit.arguments) + i] = self._sink(sink, buffers)
            first = len(unit.arguments) + len(unit.sinks)
            found.update({first + i: unit.extra + i for i in range(len(unit.plan.extra_constants))})
            out.append(found)
            for value in unit.arguments:
                if self.plan.last_reader[value] == number:
                    buffers.release(value)
        return out

    def _argument(self, value: SSAValue, buffers: _Buffers) -> int | MemRef:
        if isinstance(value, BlockArgument):
            return self.plan.view.tensors.index(value)
        held = buffers.held.get(value)
        return held if held is not None else self._stored(value)

    def _sink(self, sink: Sink, buffers: _Buffers) -> int | MemRef:
        if sink.position is None:
            return buffers.take(sink.value, self.plan.buffers[sink.value])
        return len(self.plan.view.tensors) + sink.position

    def _stored(self, value: SSAValue) -> int:
        """The result that holds a value."""
        sink = next(sink for unit in self.plan.units for sink in unit.sinks if sink.value is value and sink.position is not None)
        assert sink.position is not None
        return len(self.plan.view.tensors) + sink.position

    def emit(self) -> None:
        """The loop over this thread's blocks."""
        self.kernel.loop(self.kernel.begin, self.kernel.end, 1, self._block)

    def _block(self, number: Operand) -> None:
        tiles = self.plan.tiles
        at = self.frame.coordinates(number, [tile.count for tile in tiles]) if tiles else []
        sizes: list[Operand] = [self.frame.operand(self.plan.view.shapes.symbol(name)) for name in self.plan.view.size_names]
        rests = [self._extent(tile, here) for tile, here in zip(tiles, at, strict=True) if tile.rest is not None]
        for unit, bindings in zip(self.plan.units, self.bindings, strict=True):
            self._unit(unit, [*sizes, *at, *rests], bindings)

    def _extent(self, tile: Tile, number: Operand) -> Operand:
        kernel = self.kernel
        return kernel.min(kernel.sub(self.frame.operand(tile.full), kernel.mul(number, tile.size)), tile.size)

    def _unit(self, unit: PlannedUnit, sizes: list[Operand], bindings: dict[int, int | MemRef]) -> None:
        kernel = self.kernel
        with kernel.inlined(Inlined(0, 0, sizes, bindings)):
            workgroups = Frame(kernel, unit.plan.view).operand(unit.plan.workgroups)
        with kernel.inlined(Inlined(0, workgroups, sizes, bindings)):
            unit.family.emit(unit.plan, kernel)


EXPORT = BlockedFamily
