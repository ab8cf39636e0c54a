"""Which loops of several ops are one loop, by the reads between them: for the ops of a group that fusion has not formed
yet, and for those of a body.

    %a = exp(%x)  (r, c)      %s = sum of the rows of %a  (r, c)      %t = transpose(%a)  (c', r')
    {a.r, s.r, t.r'} are one, and {a.c, s.c, t.c'}, which s reduces along

Two loops are one where an op reads, plainly, what another writes along them. A class is **broken** where a value is
read out of step along it, or where an op has it twice: what a workgroup of a point of it reads, it has not made.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Generic, Protocol, TypeAlias, TypeVar

from fuseline.analysis.disjoint_sets import DisjointSets
from fuseline.ir.dim import Dim

T = TypeVar("T", bound=Hashable)

LoopOf: TypeAlias = tuple[T, int]
"""A loop of an op (or of what stands for one)."""

StepOf: TypeAlias = tuple[LoopOf[T], LoopOf[T] | None]
"""A loop that writes a dimension, and the loop that a reader goes along it with; None where it reads in another way."""


class LoopNest(Protocol):
    """The extents of loops, and `parallel` or `reduction` for each."""

    @property
    def loops(self) -> Sequence[Dim]:
        """The extents."""
        ...

    @property
    def iterators(self) -> Sequence[str]:
        """The kinds."""
        ...


class LoopClasses(Generic[T]):
    """The classes of the loops of `nests`; `alike` are loops that are known to be one, each
    a sequence of them. Loops of extent 1 are classes of
    their own."""

    def __init__(
        self, nests: Mapping[T, LoopNest], steps: Iterable[StepOf[T]], alike: Iterable[Sequence[LoopOf[T]]] = ()
    ) -> None:
        self.nests = nests
        self._sets = DisjointSets[LoopOf[T]]()
        out_of_step: list[LoopOf[T]] = []
        for written, read in steps:
            if self._extent(written) == 1:
                continue
            if read is not None and self._extent(read) == self._extent(written):
                self._sets.join(written, read)
            else:
                out_of_step.append(written)
        for one, other in (pair for loops in alike for pair in pairwise(loops)):
            self._sets.join(one, other)
        self.broken = frozenset([*map(self.of, out_of_step), *self._twice()])

    def of(self, loop: LoopOf[T]) -> LoopOf[T]:
        """The representative of a loop's class."""
        return self._sets.of(loop)

    def along(self, owner: T, class_: LoopOf[T]) -> list[int]:
        """The loops of an op that are in a class."""
        return [loop for loop in range(len(self.nests[owner].loops)) if self.of((owner, loop)) == class_]

    def is_shared(self, class_: LoopOf[T], placed: Iterable[T]) -> bool:
        """Whether every one of `placed` has the class once, in parallel, and is read along it in step."""
        return class_ not in self.broken and all(self._steps_along(owner, class_) for owner in placed)

    def shared(self, placed: Sequence[T]) -> list[LoopOf[T]]:
        """The classes that all of `placed` share, in the order of the last one's loops, loops of extent 1 aside."""
        last = self.nests[placed[-1]]
        order = [self.of((placed[-1], loop)) for loop, extent in enumerate(last.loops) if extent != 1]
        return [class_ for class_ in order if self.is_shared(class_, placed)]

    def _steps_along(self, owner: T, class_: LoopOf[T]) -> bool:
        loops = self.along(owner, class_)
        return len(loops) == 1 and self.nests[owner].iterators[loops[0]] == "parallel"

    def _extent(self, loop: LoopOf[T]) -> Dim:
        return self.nests[loop[0]].loops[loop[1]]

    def _twice(self) -> Iterable[LoopOf[T]]:
        """Classes that some op has twice."""
        for owner, nest in self.nests.items():
            found = [self.of((owner, loop)) for loop in range(len(nest.loops))]
            yield from (class_ for class_ in found if found.count(class_) > 1)
