"""What a body reads at places of its own: the coordinates of every `tensor.extract`, as loops where they are loops."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.dialects import linalg, tensor
from xdsl.ir import Operation, SSAValue

from fuseline.analysis.structured import StructuredOp, is_generic
from fuseline.analysis.walks import loop_of, loops_behind


@dataclass(frozen=True)
class Gather:
    """Reads of `source`: per dimension the loop whose index is the coordinate (None: it is computed), and the loops
    that each computed one varies with."""

    source: SSAValue
    loops: tuple[int | None, ...]
    computed: tuple[frozenset[int], ...]

    @property
    def varies(self) -> frozenset[int]:
        """The loops that computed coordinates vary with."""
        return frozenset[int]().union(*self.computed)


def gathers(op: linalg.ops.GenericOp) -> list[Gather]:
    """Every read that the body of `op` makes by coordinates."""
    view = StructuredOp(op)
    found: list[Gather] = []
    for inner in view.body.ops:
        if isinstance(inner, tensor.ExtractOp):
            loops = tuple(loop_of(i) for i in inner.indices)
            computed = [loops_behind(view, i) for i, loop in zip(inner.indices, loops, strict=True) if loop is None]
            found.append(Gather(inner.tensor, loops, tuple(frozenset(found) for found in computed)))
    return found


def is_picked(value: SSAValue, readers: Iterable[Operation], least: int = 2) -> bool:
    """Whether a body of `readers` picks `least` elements of the same row of `value`, or more."""
    picks = ([one for one in gathers(op) if one.source is value] for op in readers if is_generic(op))
    return any(len(mine) >= least and any(loop is not None for loop in mine[0].loops) for mine in picks)
