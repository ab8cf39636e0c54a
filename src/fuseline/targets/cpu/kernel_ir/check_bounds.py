"""Static bounds: every access of a kernel proved to stay inside its buffer, for given sizes and a given grid.

An index is an affine form over the values that are not affine themselves (loop indices, quotients, minima, what is
loaded), which `index_bounds.py` bounds with the help of the conditions of enclosing branches. What cannot be proved of
all iterations of an outermost loop is looked at by cases (`index_cases.py`), and what is left is a `Problem`.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

from fuseline.targets.cpu.kernel_ir.affine import Affine, Fact, text
from fuseline.targets.cpu.kernel_ir.contents import Range
from fuseline.targets.cpu.kernel_ir.index_bounds import IndexBounds
from fuseline.targets.cpu.kernel_ir.index_cases import CaseBounds, is_shown, whole_case
from fuseline.targets.cpu.kernel_ir.types import (
    Address,
    Block,
    Function,
    Kernel,
    Loop,
    MemRef,
    Operand,
    Value,
    When,
    While,
)


@dataclass(frozen=True)
class Problem:
    """An access that may leave its buffer: the operation, the buffer, and what could not be shown."""

    operation: str
    buffer: str
    detail: str


Operation: TypeAlias = Value | Loop | While | When

_ACCESSES = ("load", "store", "gather", "scatter", "atomic_load", "atomic")


def check_bounds(
    kernel: Kernel | Function,
    sizes: Sequence[int] = (),
    workgroups: int = 1,
    contents: Mapping[int, Range] | None = None,
) -> list[Problem]:
    """The accesses of `kernel` that cannot be shown to stay inside, for runtime `sizes` and any range of a grid of
    `workgroups`. Of a function, integer parameters are taken not to be negative.

    Args:
        contents: what lies in constants, by binding position: places that are loaded from there are known to lie
        between the two.
    """
    known = IndexBounds(kernel, sizes, workgroups, contents or {})
    return [problem for op in kernel.body.ops for problem in _problems(known, op)]


def _problems(known: IndexBounds, op: Operation) -> Sequence[Problem]:
    """Those of an operation that stands in no loop."""
    found = _of_all(known, op)
    case = whole_case(known, op) if found and isinstance(op, Loop) else None
    shown = case is not None and is_shown(case, lambda one: not _of_all(CaseBounds(known, one), one.loop))
    return () if shown else found


def _of_all(known: IndexBounds, op: Operation) -> list[Problem]:
    checker = _Checker(known)
    checker.operation(op)
    return checker.problems


class _Checker:
    def __init__(self, known: IndexBounds) -> None:
        self.known = known
        self.problems: list[Problem] = []

    def block(self, block: Block) -> None:
        for op in block.ops:
            self.operation(op)

    def operation(self, op: Operation) -> None:
        if isinstance(op, Loop):
            if not self.known.at_most(self.known.form(op.hi).plus(self.known.form(op.lo), -1), 0):  # else it never runs
                self.block(op.body)
        elif isinstance(op, When):
            for side, holds in ((op.then, True), (op.otherwise, False)):
                with self._under(self.known.facts_of(op.condition, holds)) as possible:
                    if possible:
                        self.block(side)
        elif isinstance(op, While):
            self.block(op.test)
            with self._under([] if op.condition is None else self.known.facts_of(op.condition, True)) as possible:
                if possible:
                    self.block(op.body)
        elif op.op in _ACCESSES:
            self._access(op)

    @contextmanager
    def _under(self, facts: Iterable[Fact]) -> Generator[bool]:
        """Inside, these conditions hold as well; whether they can."""
        more = list(facts)
        with self.known.conditions.assuming(more):
            yield all(larger.terms or smaller.terms or smaller.constant <= larger.constant for smaller, larger in more)

    def _access(self, op: Value) -> None:
        address, active = op.args[0], op.args[1]
        if op.op not in ("gather", "scatter"):
            lanes = (op.args[3].type if op.op == "store" else op.type).lanes
            count = self.known.form(lanes if active is None else active)
            with self._under([] if active is None else [(Affine(1), count)]) as possible:
                if possible:
                    self._range(op, address, Affine(), count.plus(Affine(1), -1))
        else:
            for lane in range(op.args[3].type.lanes):
                self._lane(op, address, active, lane)

    def _lane(self, op: Value, address: Address, active: Operand | None, lane: int) -> None:
        """One lane of a gather or scatter, which is live only if `active` exceeds it."""
        self.known.lane = lane
        with self._under([] if active is None else [(Affine(lane + 1), self.known.form(active))]) as possible:
            if possible:
                offsets = self.known.form(op.args[3])
                self._range(op, address, offsets, offsets)

    def _range(self, op: Value, address: Address, first: Affine, last: Affine) -> None:
        place = self.known.form(address.index).plus(Affine(address.offset))
        first, last = place.plus(first), place.plus(last)
        if isinstance(address.root, MemRef):
            self._inside(op, address.root, first, last)
            return
        condition, a, b = address.root.args
        for side, holds in ((a, True), (b, False)):
            with self._under(self.known.facts_of(condition, holds)) as possible:
                if possible:
                    self._range(op, side, first, last)

    def _inside(self, op: Value, memory: MemRef, first: Affine, last: Affine) -> None:
        extent = self.known.form(memory.extent)
        if not self.known.at_most(last.plus(extent, -1), -1):
            self.problems.append(
                Problem(op.op, memory.name, f"cannot show that element {text(last)} lies before {text(extent)}")
            )
        if not self.known.not_negative(first):
            self.problems.append(Problem(op.op, memory.name, f"cannot show that element {text(first)} is not negative"))
