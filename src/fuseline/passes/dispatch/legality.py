"""The target's veto: each merge is shown to it as the dispatch that would come of it (`Target.legal`), before it is
applied."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.dispatch.candidate import CandidateMember
from fuseline.dispatch.fused_loops import FusedLoops
from fuseline.errors import FuselineError
from fuseline.passes.dispatch.region_loops import loops_of_group
from fuseline.passes.fusion.cached import cached
from fuseline.passes.fusion.code_size import operations
from fuseline.passes.fusion.decision import WhyNot
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.inlining import with_inlined_members
from fuseline.passes.fusion.merging import joined
from fuseline.targets.target import Legality, Refusal

_ANY_NUMBER = 1 << 30


@dataclass(eq=False)
class GroupCandidate:
    """Groups that would be the arms of one dispatch, or the one group that would be a dispatch (a
    `dispatch.candidate.DispatchCandidate`)."""

    groups: tuple[Group, ...]
    shapes: ShapeAnalysis

    @cached
    def group(self) -> Group:
        """All of it as one group."""
        return self.groups[0] if len(self.groups) == 1 else joined(self.groups)

    @cached
    def finished(self) -> Group:
        """The same over all the loops that its dispatch would have."""
        return with_inlined_members(self.group)

    @property
    def arms(self) -> Sequence[GroupCandidate]:
        """The independent parts."""
        return [self] if len(self.groups) == 1 else [GroupCandidate((group,), self.shapes) for group in self.groups]

    @property
    def members(self) -> Sequence[CandidateMember]:
        """The ops that do something."""
        group = self.group
        return [CandidateMember(node.op, node.kind, node.reduces, node in group.inlined) for node in group.members]

    @property
    def has_root(self) -> bool:
        """Whether a contraction, convolution or window is among them."""
        return self.group.heavy

    @property
    def operands(self) -> Sequence[SSAValue]:
        """The tensors it would read."""
        return list({id(read.value): read.value for read in self.group.outside_reads() if not read.filled}.values())

    @property
    def results(self) -> Sequence[SSAValue]:
        """The tensors it would write."""
        arms = self.finished.arms or (self.finished,)
        return [*self.group.results(), *(value for arm in arms for value in arm.stored_rows.added)]

    @property
    def loops(self) -> FusedLoops:
        """The loops that the members would share."""
        return loops_of_group(self.finished, [node.op for node in self.finished.members], self.shapes.unnamed)

    @property
    def operations(self) -> int:
        """About how many operations its code would have."""
        return operations(self.group, _ANY_NUMBER)

    @property
    def scratch_bytes(self) -> int | None:
        """The scratch of one workgroup."""
        return self.group.scratch_beside_rows


@dataclass(frozen=True)
class TargetVeto:
    """Asks `legal` about groups whose sizes are in `shapes`."""

    legal: Legality
    shapes: ShapeAnalysis

    def __call__(self, groups: Sequence[Group]) -> WhyNot | None:
        """Why the target does not take a dispatch with these arms (one group: a dispatch of one part), None where it
        does."""
        found = self.refusal(groups)
        return (
            WhyNot("target", f"{found.code}: {found.detail}", groups[-1].root.name, found.numbers)
            if found is not None
            else None
        )

    def refusal(self, groups: Sequence[Group]) -> Refusal | None:
        """The same in the target's own words."""
        arms = tuple([arm for group in groups for arm in (group.arms or (group,))])
        return self.legal(GroupCandidate(arms, self.shapes))

    def require(self, groups: Iterable[Group]) -> None:
        """Raises E0307 naming the nodes of a group that the target does not take, which there is where it refuses an op
        even alone."""
        for group in groups:
            found = self.refusal([group])
            if found is not None:
                nodes = dict.fromkeys(name for node in group.members for name in node.nodes)
                what = (
                    group.root.name if len(group.members) == 1 else f"{len(group.members)} ops around {group.root.name}"
                )
                raise FuselineError(
                    "E0307",
                    f"{what}: {found.code}: {found.detail}",
                    node=", ".join(nodes) or group.root.name,
                    hint=_HINT,
                )


_HINT = "compile for another target, or widen the limits of its description"
