"""The sub-kernels of a blocked dispatch: what each small kernel inside computes.

A heavy op starts a sub-kernel, and takes in the elementwise ops that follow it point by point. Everything else,
reductions and elementwise alike, runs in nests, as few as the order of the values allows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import linalg
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.ir.affine import AffineDimExpr

from fuseline.analysis.structured import StructuredOp, tensor_operands
from fuseline.targets.cpu.families.blocked.dispatch import BlockedDispatch


@dataclass(eq=False)
class SubKernel:
    """Placed ops that one kernel computes on a block, in program order; `root` is the heavy op, None for a loop
    nest."""

    root: linalg.ops.GenericOp | None
    members: list[linalg.ops.GenericOp] = field(default_factory=list[linalg.ops.GenericOp])

    def makes(self, value: SSAValue) -> bool:
        """Whether the sub-kernel computes `value`."""
        return isinstance(value, OpResult) and value.op in self.members


def sub_kernels_of(dispatch: BlockedDispatch, placed: Sequence[linalg.ops.GenericOp] | None = None) -> list[SubKernel]:
    """The sub-kernels that compute `placed` (all placed ops), in the order in which they run."""
    sub_kernels: list[SubKernel] = []
    for op in dispatch.placed if placed is None else placed:
        if dispatch.heavy(op):
            sub_kernels.append(SubKernel(op, [op]))
            continue
        last = max(
            (i for i, sub_kernel in enumerate(sub_kernels) if any(sub_kernel.makes(v) for v in sources(dispatch, op))),
            default=-1,
        )
        home = (
            sub_kernels[last]
            if last >= 0 and _joins(dispatch, sub_kernels[last], op)
            else _nest_from(sub_kernels, last)
        )
        if home is None:
            home = SubKernel(None)
            sub_kernels.append(home)
        home.members.append(op)
    for sub_kernel in sub_kernels:
        if sub_kernel.root is not None:
            _give_away(dispatch, sub_kernels, sub_kernel)
    return sub_kernels


def _give_away(dispatch: BlockedDispatch, sub_kernels: Sequence[SubKernel], sub_kernel: SubKernel) -> None:
    """Move what follows a root, but is only read by one nest, there: unless that needs a value that nobody else reads
    back."""
    order = {op: i for i, op in enumerate(dispatch.placed)}
    for op in reversed(sub_kernel.members[1:]):
        homes = {id(other): other for value in op.results for other in readers(dispatch, sub_kernels, value)}
        (home,) = homes.values() if len(homes) == 1 else (None,)
        inside = any(value in set(sources(dispatch, member)) for member in sub_kernel.members for value in op.results)
        if home is None or home.root is not None or inside or dispatch.returned & set(op.results):
            continue
        if all(
            _lives_anyway(dispatch, sub_kernel, op, value) for value in sources(dispatch, op) if sub_kernel.makes(value)
        ):
            sub_kernel.members.remove(op)
            home.members = sorted([*home.members, op], key=order.__getitem__)


def _lives_anyway(dispatch: BlockedDispatch, sub_kernel: SubKernel, op: Operation, value: SSAValue) -> bool:
    """Whether a value of the sub-kernel outlives it for others than `op`."""
    others = [member for member in dispatch.placed if member not in sub_kernel.members and member is not op]
    return value in dispatch.returned or any(value in set(sources(dispatch, member)) for member in others)


def sources(dispatch: BlockedDispatch, op: Operation) -> Iterator[SSAValue]:
    """The placed values that an op reads, through rearrangements."""
    pending = list(tensor_operands(op))
    seen: set[SSAValue] = set()
    while pending:
        value = pending.pop()
        if value in seen or not isinstance(value, OpResult):
            continue
        seen.add(value)
        if value.op in dispatch.moved:
            pending += tensor_operands(value.op)
        elif dispatch.is_inside(value):
            yield value


def readers(dispatch: BlockedDispatch, sub_kernels: Iterable[SubKernel], value: SSAValue) -> list[SubKernel]:
    """The sub-kernels that read a placed value, its own aside."""
    return [
        sub_kernel
        for sub_kernel in sub_kernels
        if not sub_kernel.makes(value) and any(value in set(sources(dispatch, op)) for op in sub_kernel.members)
    ]


@dataclass(frozen=True, slots=True)
class LiveRange:
    """A value that is needed from sub-kernel number `first`, which makes it, to the last one that reads it: in scratch,
    or in a result (`stored`)."""

    value: SSAValue
    first: int
    last: int
    stored: bool


def live_ranges(dispatch: BlockedDispatch, sub_kernels: Sequence[SubKernel]) -> list[LiveRange]:
    """What lies between sub-kernels. A value that is a result as a whole takes no scratch: it is read back from
    there."""
    out: list[LiveRange] = []
    for first, sub_kernel in enumerate(sub_kernels):
        for value in (value for op in sub_kernel.members for value in op.results):
            reading = readers(dispatch, sub_kernels, value)
            if reading:
                out.append(
                    LiveRange(
                        value, first, max(sub_kernels.index(other) for other in reading), value in dispatch.returned
                    )
                )
    return out


def peak_live(live: Sequence[LiveRange], sizes: Sequence[float]) -> float:
    """The peak of the sum of `sizes` (bytes, one per live range) over all sub-kernels; 0 without live ranges."""
    sub_kernels = range(1 + max((one.last for one in live), default=0))
    return max(
        sum(size for one, size in zip(live, sizes, strict=True) if one.first <= sub_kernel <= one.last)
        for sub_kernel in sub_kernels
    )


def _nest_from(sub_kernels: Sequence[SubKernel], first: int) -> SubKernel | None:
    """A nest at or behind `first`."""
    return next((sub_kernel for sub_kernel in sub_kernels[max(first, 0) :] if sub_kernel.root is None), None)


def _joins(dispatch: BlockedDispatch, sub_kernel: SubKernel, op: linalg.ops.GenericOp) -> bool:
    """Whether an op may be computed with the last sub-kernel that it reads: in a nest always, behind a root where it
    follows point by point."""
    if sub_kernel.root is None:
        return True
    structured = StructuredOp(op)
    if structured.reduction:
        return False
    points = dispatch.parallel(sub_kernel.root)
    if dispatch.parallel(op) != points:
        return False
    return all(
        _in_step(dispatch, structured, value) for value in structured.inputs if _from(dispatch, sub_kernel, value)
    )


def _from(dispatch: BlockedDispatch, sub_kernel: SubKernel, value: SSAValue) -> bool:
    """Whether a value is the sub-kernel's, or rearranged from one of its."""
    if not isinstance(value, OpResult) or not dispatch.is_inside(value):
        return False
    return sub_kernel.makes(value) or (
        value.op in dispatch.moved and any(sub_kernel.makes(v) for v in sources(dispatch, value.op))
    )


def _in_step(dispatch: BlockedDispatch, follower: StructuredOp, value: SSAValue) -> bool:
    """Whether every dimension of a value is read along its own axis, and every loop moves along one."""
    loops, map_ = dispatch.axes.of_op(follower.op), follower.input_maps[follower.inputs.index(value)]
    axes = dispatch.axes.of_value(value)
    plain = all(
        axis is None or (isinstance(expr, AffineDimExpr) and loops[expr.position] == axis)
        for axis, expr in zip(axes, map_.results, strict=True)
    )
    return plain and {axis for axis in axes if axis is not None} == dispatch.parallel(follower.op)
