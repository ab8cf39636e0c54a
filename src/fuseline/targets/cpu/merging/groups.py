"""Which kernels of a program become one: those of equal plans, which are the same code up to numbers, as long as none
takes much longer for it (`MachineCosts.sharing_loss`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.kernel_ir.types import Kernel
from fuseline.targets.cpu.merging.forms import UnlikeError
from fuseline.targets.cpu.merging.merge import Merged, merge
from fuseline.targets.cpu.merging.outline import first_difference, outline
from fuseline.targets.cpu.merging.price import price


@dataclass(frozen=True)
class Candidate:
    """A kernel with its loops kept (`Emitter.keeps_loops`). Only kernels of one `kind` are compared. `lost`: the share
    of its time that a launch loses already, by a plan that it has in common with others, or by edges that are kept;
    `own`: what it is priced beside, where that is not `kernel`."""

    kind: str
    kernel: Kernel
    lost: float = 0.0
    own: Kernel | None = None


@dataclass(frozen=True)
class Group:
    """The candidates with these numbers are `merged`, in this order. `lost`: the share of its time that each loses,
    predicted."""

    members: tuple[int, ...]
    merged: Merged
    lost: tuple[float, ...] = ()


@dataclass(frozen=True)
class Unshared:
    """Why a candidate is not one kernel with another one, `other`: they differ (`share` 0), or it would lose `share`
    of its time."""

    candidate: int
    other: int
    reason: str
    share: float = 0.0


def grouped(candidates: Sequence[Candidate], symbol: str, machine: Machine) -> tuple[list[Group], list[Unshared]]:
    """The kernels that become one, and why others of their kind do not."""
    grouping = _Grouping(candidates, symbol, machine)
    groups = [group for numbers in grouping.alike() for group in grouping.groups(numbers)]
    return groups, grouping.unshared


class _Grouping:
    def __init__(self, candidates: Sequence[Candidate], symbol: str, machine: Machine) -> None:
        self.candidates, self.symbol, self.machine = candidates, symbol, machine
        self.unshared: list[Unshared] = []

    def alike(self) -> Iterator[list[int]]:
        """The candidates of each kind and outline."""
        kinds: dict[str, dict[tuple[str, ...], list[int]]] = {}
        for i, candidate in enumerate(self.candidates):
            kinds.setdefault(candidate.kind, {}).setdefault(outline(candidate.kernel), []).append(i)
        for outlines in kinds.values():
            for text, numbers in outlines.items() if len(outlines) > 1 else ():
                near = max((one for one in outlines if one is not text), key=lambda one: _alike(one, text))
                reason = first_difference(text, near)
                self.unshared += [Unshared(i, outlines[near][0], reason) for i in numbers]
            yield from outlines.values()

    def groups(self, numbers: Sequence[int]) -> Iterator[Group]:
        """Groups of two or more among candidates of one outline: each is taken up by the first that has room for it."""
        found: list[list[int]] = []
        for number in numbers:
            home = next((members for members in found if self._merged([*members, number]) is not None), None)
            if home is None:
                found.append([number])
            else:
                home.append(number)
        for members in found:
            group = self._merged(members) if len(members) > 1 else None
            if group is not None:
                yield group

    def _merged(self, members: Sequence[int]) -> Group | None:
        """The kernel of some candidates; None where there is none, or one of them would take longer."""
        try:
            merged = merge([self.candidates[i].kernel for i in members], self.symbol, self.machine)
        except UnlikeError as unlike:
            self.unshared.append(Unshared(members[-1], members[0], str(unlike)))
            return None
        ours = [self.candidates[i] for i in members]
        lost = tuple(one.lost + price(merged.kernel, one.own or one.kernel) for one in ours)
        if max(lost) > self.machine.costs.sharing_loss:
            reason = "distances in memory that are sizes take registers in the innermost loop"
            self.unshared.append(Unshared(members[-1], members[0], reason, max(lost)))
            return None
        return Group(tuple(members), merged, lost)


def _alike(one: Sequence[str], other: Sequence[str]) -> int:
    """How many ops two outlines have in common before they first differ."""
    pairs = zip(one, other, strict=False)
    return next((number for number, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def reasons_of(unshared: Sequence[Unshared], names: Sequence[str]) -> dict[int, tuple[str, ...]]:
    """By candidate, why it shares its code with others no more, in words; `names` are those of the candidates."""
    found: dict[int, tuple[str, ...]] = {}
    for one in unshared:
        lost = f"{one.share:.0%} slower: " if one.share else ""
        found[one.candidate] = (*found.get(one.candidate, ()), f"@{names[one.other]}: {lost}{one.reason}")
    return found
