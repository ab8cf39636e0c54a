"""What a target is asked about before fusion merges groups: a dispatch that does not exist yet, seen as if it did.

Everything is computed when it is asked for: a merge is asked about thousands of times, and most targets look at little.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from xdsl.ir import Operation, SSAValue

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import Kind
from fuseline.dispatch.fused_loops import FusedLoops


class CandidateMember(NamedTuple):
    """One op of the dispatch. `op` stands where it is in the program; `reduces`: any of its loops is a reduction;
    `inlined`: it is evaluated where it is read."""

    op: Operation
    kind: Kind
    reduces: bool
    inlined: bool


class DispatchCandidate(Protocol):
    """The ops that would be one dispatch, and what would lie around them. Several `arms` are independent parts; a
    dispatch of one has itself."""

    @property
    def arms(self) -> Sequence[DispatchCandidate]:
        """The independent parts, each a candidate of its own."""
        ...

    @property
    def members(self) -> Sequence[CandidateMember]:
        """The ops that do something, in program order."""
        ...

    @property
    def has_root(self) -> bool:
        """Whether a contraction, convolution or window is among them."""
        ...

    @property
    def operands(self) -> Sequence[SSAValue]:
        """The tensors it would read, fills aside; each once, however often it is reshaped."""
        ...

    @property
    def results(self) -> Sequence[SSAValue]:
        """The tensors it would write, each the result of a member."""
        ...

    @property
    def loops(self) -> FusedLoops:
        """The loops that the members would share; `loops.members` are in the order of `members`."""
        ...

    @property
    def shapes(self) -> ShapeAnalysis:
        """The sizes of all values."""
        ...

    @property
    def operations(self) -> int:
        """About how many operations its code would have."""
        ...

    @property
    def scratch_bytes(self) -> int | None:
        """The scratch that one workgroup needs at most, in bytes; None where nothing bounds it."""
        ...
