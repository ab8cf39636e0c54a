"""The kernels of a launch proved to stay inside of their buffers, for the sizes of this run and what its constants
hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from fuseline.program.steps import DispatchStep
from fuseline.runtime.program import Arm
from fuseline.targets.cpu.kernel_ir.check_bounds import check_bounds
from fuseline.targets.cpu.kernel_ir.contents import Range
from fuseline.targets.cpu.kernel_ir.index_bounds import IndexBounds
from fuseline.targets.cpu.kernel_ir.stored_ranges import range_of_bytes
from fuseline.targets.cpu.kernel_ir.types import BYTES, Kernel
from fuseline.verify.check.guarded import copies, stays_inside
from fuseline.verify.check.native import Numbers, addresses, numbers
from fuseline.verify.check.programs import CheckedProgram
from fuseline.verify.check.stepping import Reading


class Proof(NamedTuple):
    """Of a launch: the accesses that may leave their buffers, and whether a run between guarded pages stayed inside all
    the same (None: it was not asked, everything is proved). `asked` is false where there is no kernel IR of it."""

    unproved: tuple[str, ...] = ()
    stayed: bool | None = None
    asked: bool = True


class Proofs:
    """The proofs of one program; what was proved once is not proved again."""

    def __init__(self, program: CheckedProgram) -> None:
        self._program = program
        self._known: dict[Any, Proof] = {}

    def proof(self, reading: Reading) -> Proof:
        """That a launch, which is about to run, touches nothing beside its buffers."""
        step = reading.step
        if not isinstance(step, DispatchStep):
            return Proof(asked=False)
        bodies = self._program.lowering.kernels[step.executable].bodies
        found: list[Proof] = []
        for body, arm in zip(bodies, reading.command.arms, strict=True):
            kernel = self._program.kernels.get(body.symbol)
            if kernel is None or len(kernel.sizes) != len(arm.sizes):
                return Proof(asked=False)
            found.append(self._of_arm(body.symbol, kernel, arm, reading))
        stayed = [one.stayed for one in found if one.stayed is not None]
        return Proof(tuple(text for one in found for text in one.unproved), all(stayed) if stayed else None)

    def _of_arm(self, symbol: str, kernel: Kernel, arm: Arm, reading: Reading) -> Proof:
        given = numbers(arm, reading.memory.evaluate)
        if given.workgroups < 1:
            return Proof()
        contents = tuple(self._contents(kernel, arm, given.sizes, reading.memory.evaluate))
        key = (symbol, given, contents)
        if key not in self._known:
            problems = check_bounds(kernel, given.sizes, given.workgroups, dict(contents))
            texts = tuple(f"{one.operation} of {one.buffer}: {one.detail}" for one in problems)
            stayed = _stayed(kernel, arm, given, reading) if problems else None
            self._known[key] = Proof(texts, stayed)
        return self._known[key]

    def _contents(self, kernel: Kernel, arm: Arm, sizes: tuple[int, ...], evaluate: Any) -> Iterator[tuple[int, Range]]:
        """What the constants that a launch reads hold, by binding; in a loop they may move."""
        for memory in () if arm.loop_offsets else kernel.bindings:
            place = arm.bindings[memory.position]
            if place.segment == "constant":
                elements = IndexBounds(kernel, sizes, 1, {}).form(memory.extent).constant  # a number, as the sizes are
                stored = np.frombuffer(self._program.artifact.constants[place.number], np.uint8)
                stored = stored[evaluate(place.offset) :][: elements * BYTES[memory.dtype]]
                found = range_of_bytes(stored, memory.dtype)
                if found is not None:
                    yield memory.position, found


def _stayed(kernel: Kernel, arm: Arm, given: Numbers, reading: Reading) -> bool:
    """Whether this launch stays inside, on copies of its buffers as they are now."""
    known = IndexBounds(kernel, given.sizes, 1, {})
    bytes_of = {one.position: known.form(one.extent).constant * BYTES[one.dtype] for one in kernel.bindings}
    places = addresses(arm, reading.address)
    buffers = copies(places, [bytes_of.get(position, 0) for position in range(len(places))])
    return stays_inside(reading.code, arm.kernel, buffers, given, kernel.scratch_bytes)
