"""Fuel: how many optional decisions a compile may still make, for finding the one that does harm.

    fusion=12       of all merges the first twelve, then none

Every decision of a kind asks before it is made and is noted when it was, in the order of the compile; so two compiles
of one program with the same fuel make the same decisions, and one more of it is one decision more (LLVM's
opt-bisect-limit is the same idea). A compile without fuel asks nobody.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

KINDS: dict[str, str] = {
    "pass": "a pass that a program is right without",
    "rewrite": "a fold of `canonicalize`",
    "fusion": "a merge of two or more groups",
    "kernel": "a kernel family, where the plain loop nest would do",
}
"""What has fuel of its own."""


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision: its kind, its number among those, what was decided (the name of a pass, a fold, a rule, a family),
    and about what: structural ids or names of ops, and source nodes."""

    kind: str
    number: int
    what: str
    ops: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()


@dataclass(slots=True)
class Fuel:
    """Of each kind in `limits` there is so much; of others without end. `spent` are the decisions that were made."""

    limits: Mapping[str, int] = field(default_factory=dict[str, int])
    spent: list[Decision] = field(default_factory=list[Decision])
    _counts: dict[str, int] = field(default_factory=dict[str, int])

    def left(self, kind: str) -> bool:
        """Whether one more decision of a kind may be made."""
        limit = self.limits.get(kind)
        return limit is None or self.count(kind) < limit

    def count(self, kind: str) -> int:
        """How many decisions of a kind were made."""
        return self._counts.get(kind, 0)

    def spend(self, kind: str, what: str, ops: tuple[str, ...] = (), nodes: tuple[str, ...] = ()) -> None:
        """Note a decision that was made."""
        self.spent.append(Decision(kind, self.count(kind), what, ops, nodes))
        self._counts[kind] = self.count(kind) + 1
