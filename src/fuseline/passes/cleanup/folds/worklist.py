"""The driver of local simplifications: each op is looked at once, and again whenever something near it changed.

A fold is a function `fold(op, work) -> bool` that rewrites through `work` only, and answers whether it did.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.rewriter import Rewriter

from fuseline.ir.fast.direct import erase, operands_of
from fuseline.ir.fast.nesting import ops_inside
from fuseline.ir.fuel import Fuel
from fuseline.ir.provenance import carry, provenance
from fuseline.ir.rounds import rounds
from fuseline.passes.cleanup.elimination import is_dead

Fold: TypeAlias = Callable[[Any, "Worklist"], bool]

MOST_VISITS = 200
"""Visits per op, on the average: an op is looked at again after each fold beside it. More are folds that undo each
other."""


class Worklist:
    """Ops still to look at, and the rewrites that folds may do."""

    def __init__(self, folds: Mapping[type[Operation], Sequence[Fold]], fuel: Fuel | None = None) -> None:
        self._folds, self._fuel = folds, fuel
        self._pending: list[Operation] = []
        self._queued: set[int] = set()  # by identity: pending ops are alive, and the hash of an op is that in Python
        self.gone: set[str] = set()
        """Source nodes of ops that were removed without a successor."""

    def run(self, root: Operation) -> None:
        """Apply the folds inside `root` until none applies."""
        inside = ops_inside(root)
        self._push(reversed(inside))
        for _ in rounds("folding", most=MOST_VISITS * (len(inside) + 16)):
            if not self._pending:
                break
            op = self._pending.pop()
            self._queued.discard(id(op))
            if op.parent is not None and not self._removed(op):
                self._visit(op)

    def _visit(self, op: Operation) -> None:
        if self._fuel is not None:
            self._visit_counted(op, self._fuel)
            return
        for fold in self._folds.get(type(op), ()):
            if fold(op, self):
                if op.parent is not None:
                    self._push([op])
                return

    def _visit_counted(self, op: Operation, fuel: Fuel) -> None:
        """A visit that asks before each fold whether one more may be done, and notes it."""
        about = (op.name,), tuple(provenance(op))
        for fold in self._folds.get(type(op), ()) if fuel.left("rewrite") else ():
            if fold(op, self):
                fuel.spend("rewrite", getattr(fold, "__name__", type(fold).__name__).strip("_"), *about)
                if op.parent is not None:
                    self._push([op])
                return

    def _removed(self, op: Operation) -> bool:
        if not is_dead(op):
            return False
        self.erase(op)
        return True

    def _push(self, ops: Iterable[Operation]) -> None:
        for op in ops:
            if id(op) not in self._queued:
                self._queued.add(id(op))
                self._pending.append(op)

    def touch(self, op: Operation) -> None:
        """Look at `op`, what reads it, what it reads and what surrounds it again."""
        self._push(_producers(op))
        self._push(use.operation for result in op.results for use in result.uses)
        parent = op.parent_op()
        self._push([op] if parent is None else [parent, op])

    def replace(self, op: Operation, new: Sequence[Operation], results: Sequence[SSAValue] | None = None) -> None:
        """Put `new` (inserted before `op`) and `results` (default: those of the last new op) in place of `op`.

        Without new ops, the source nodes of `op` count as gone unless something else carries them.
        """
        results = list(results) if results is not None else list(new[-1].results)
        users = [use.operation for result in op.results for use in result.uses]
        producers = _producers(op)
        if new:
            carry((op,), new)
        else:
            self.gone.update(provenance(op))
        Rewriter.replace_op(op, list(new), results)
        self._push(producers)
        self._push(users)
        for op in new:
            self._push([op, *ops_inside(op)])

    def erase(self, op: Operation) -> None:
        """Remove a dead op."""
        producers, parent = _producers(op), op.parent_op()
        for inner in (op, *ops_inside(op)):
            self.gone.update(provenance(inner))
        erase(op)
        self._push(producers if parent is None else [parent, *producers])


def _producers(op: Operation) -> list[Operation]:
    return [value.op for inner in (op, *ops_inside(op)) for value in operands_of(inner) if type(value) is OpResult]
