"""The arms of a dispatch: parts of it that share no value made inside, so that each is a grid of its own in the one
launch.

    %a = matmul(%x, %p)      an arm
    %b = matmul(%x, %q)      another, with the same code
    return %a, %b

    %a = conv1x1(%x)         an arm: writes channels 0.. of the result
    %b = conv3x3(%x)         an arm: writes the channels behind
    return concat(%a, %b)

A concat that is only returned joins nothing: each arm writes its parts where they belong, and a part that is an
argument is an arm that copies. What fusion lets go along one argument stays together (`fuseline.loops`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from xdsl.dialects import func, tensor
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Operation, OpResult, SSAValue

from fuseline.analysis.cost import flops, num_bytes
from fuseline.analysis.disjoint_sets import DisjointSets
from fuseline.analysis.moves import RESHAPES
from fuseline.analysis.structured import Kind, captured, is_generic, kind
from fuseline.dispatch.fused_loops import members_of
from fuseline.dispatch.view import DispatchView
from fuseline.ir.costs import assumed_size
from fuseline.ir.dim import Dim, add, symbols

MOST_PARTS = 128
"""Parts of a concat that are stored one by one; one of more is made as a whole."""


@dataclass(frozen=True)
class Output:
    """What a dispatch stores in its result `position`: all of it, or the box of a tensor of `dims` that begins at
    `offsets`."""

    position: int
    value: SSAValue
    dims: tuple[Dim, ...] = ()
    offsets: tuple[Dim, ...] | None = None


@dataclass(frozen=True)
class Subgrid:
    """Outputs that are made together, and the ops of the dispatch that make them (none: what is stored is an argument
    or a constant)."""

    outputs: tuple[Output, ...]
    members: tuple[Operation, ...]


def subgrids(view: DispatchView) -> list[Subgrid]:
    """The arms of a dispatch in canonical order: dear ones first, whatever the order of its ops and their names; one
    where it is of a piece."""
    outputs = [output for position, result in enumerate(view.results) for output in _outputs(view, position, result)]
    found = _connected(view, outputs) if len(outputs) > 1 else []
    joined = _joined(view, found)
    if len(found) < 2 or (len(joined) == 1 and not any(output.offsets for output in outputs)):
        whole = tuple(Output(position, result) for position, result in enumerate(view.results))
        return [Subgrid(whole, view.members)]
    return found if len(joined) == len(found) else _ranked(view, joined)


def _connected(view: DispatchView, outputs: Sequence[Output]) -> list[Subgrid]:
    links = _Links(view)
    for output in outputs:
        links.reach(output.value)
    homes: dict[Hashable, list[Output]] = {}
    for output in outputs:
        homes.setdefault(links.root(links.key(output.value)), []).append(output)
    return _ranked(view, [_subgrid(view, links, root, mine) for root, mine in homes.items()])


def _subgrid(view: DispatchView, links: _Links, root: Hashable, outputs: Sequence[Output]) -> Subgrid:
    members = tuple(op for op in view.members if op in links.reached and links.root(op) == root)
    return Subgrid(tuple(outputs), members)


# what is stored -------------------------------------------------------------------------------------------------------


def _outputs(view: DispatchView, position: int, result: SSAValue) -> Iterator[Output]:
    """The parts of a returned concat, reshaped or not; anything else is stored as it is."""
    value = result
    while isinstance(value, OpResult) and isinstance(value.op, RESHAPES):
        value = value.op.operands[0]
    if not _is_seam(value):
        yield Output(position, result)
        return
    dims = view.shapes.dims(value)
    parts = list(islice(_parts(view, value, (0,) * len(dims)), MOST_PARTS + 1))
    if len(parts) > MOST_PARTS:
        yield Output(position, result)
        return
    yield from (Output(position, part, dims, offsets) for part, offsets in parts)


def _parts(view: DispatchView, value: SSAValue, at: tuple[Dim, ...]) -> Iterator[tuple[SSAValue, tuple[Dim, ...]]]:
    """The parts of a concat, and of concats among them, with where each begins."""
    if not _is_seam(value):
        yield value, at
        return
    assert isinstance(value, OpResult) and isinstance(value.op, tensor.ConcatOp)
    axis = value.op.dim.value.data
    for part in value.op.inputs:
        yield from _parts(view, part, at)
        at = (*at[:axis], add(at[axis], view.shapes.dims(part)[axis]), *at[axis + 1 :])


def _is_seam(value: SSAValue) -> bool:
    """Whether `value` is a concat of which nothing but its parts is needed: a reader inside the dispatch wants all of
    it."""
    if not (isinstance(value, OpResult) and isinstance(value.op, tensor.ConcatOp)):
        return False
    pending: list[SSAValue] = [value]
    seen: set[Operation] = set()
    while pending:
        for use in pending.pop().uses:
            if isinstance(use.operation, (*RESHAPES, tensor.ConcatOp)):
                if use.operation not in seen:
                    seen.add(use.operation)
                    pending += use.operation.results
            elif not isinstance(use.operation, func.ReturnOp):
                return False
    return True


# subgrids -----------------------------------------------------------------------------------------------------------


class _Links:
    """Which ops and outputs hang together through values made inside the dispatch. Sizes link nothing: every arm
    computes its own."""

    def __init__(self, view: DispatchView) -> None:
        self.view = view
        self.reached: set[Operation] = set()
        self._sets = DisjointSets[Hashable]()

    def key(self, value: SSAValue) -> Hashable:
        """What stands for a stored value: the op that makes it, or the value itself where it is an argument."""
        return value.op if isinstance(value, OpResult) else value

    def root(self, key: Hashable) -> Hashable:
        """The representative of what hangs together with `key`."""
        return self._sets.of(key)

    def reach(self, value: SSAValue) -> None:
        """Link the ops that `value` depends on."""
        pending = [value.op] if isinstance(value, OpResult) else []
        while pending:
            op = pending.pop()
            if op in self.reached:
                continue
            self.reached.add(op)
            for source in _sources(self.view, op):
                if not is_constant_like(source) and not _reads_scalar(self.view, source):
                    self._sets.join(source, op)
                pending.append(source)


def _sources(view: DispatchView, op: Operation) -> Iterator[Operation]:
    """The ops that make what `op` reads, sizes that follow from the dispatch's own left out."""
    for value in operands_of(op):
        if isinstance(value, OpResult) and not is_size(view, value):
            yield value.op


def operands_of(op: Operation) -> list[SSAValue]:
    """What an op reads: its operands, then what its regions use of outside, each once."""
    return list(dict.fromkeys((*op.operands, *(captured(op) if op.regions else ()))))


def is_size(view: DispatchView, value: SSAValue) -> bool:
    """Whether an index value follows from the dispatch's size arguments."""
    return isinstance(value.type, IndexType) and all(
        symbol.name in view.size_names for symbol in symbols(view.shapes.index(value))
    )


def is_constant_like(op: Operation) -> bool:
    """Whether every arm may have a copy of `op`: it reads nothing but other such ops, and costs nothing."""
    read = [value for value in operands_of(op) if not isinstance(value.type, IndexType)]
    free = kind(op) in (Kind.EMPTY, Kind.CONSTANT, Kind.FILL, Kind.SCALAR)
    return free and all(isinstance(value, OpResult) and is_constant_like(value.op) for value in read)


def _reads_scalar(view: DispatchView, op: Operation) -> bool:
    """Whether `op` reads a number that stands for a constant: every arm may do so."""
    return isinstance(op, tensor.ExtractOp) and view.is_scalar(op.tensor)


# subgrids that are made together --------------------------------------------------------------------------------------


def _joined(view: DispatchView, found: Sequence[Subgrid]) -> list[Subgrid]:
    """Subgrids that fusion lets go along one argument become one."""
    homes = _arms_along(view) if len(found) > 1 else {}
    groups: dict[Hashable, list[Subgrid]] = {}
    for number, subgrid in enumerate(found):
        made = (*subgrid.members, *(output.value for output in subgrid.outputs))
        arm = next((homes[one] for one in made if one in homes), None)
        groups.setdefault(-1 - number if arm is None else arm, []).append(subgrid)
    return [group[0] if len(group) == 1 else _union(view, group) for group in groups.values()]


def _arms_along(view: DispatchView) -> dict[Operation | SSAValue, int]:
    """The arms that go along an argument: of that, and of what makes something there."""
    said = view.said_loops
    if said is None or not said.along:
        return {}
    members = members_of(view.entry.body.block)
    homes: dict[Operation | SSAValue, int] = {}
    for member, operand in said.along:
        homes.setdefault(members[member].operands[operand], said.members[member].arm)
    arms = set(homes.values())
    return homes | {op: one.arm for op, one in zip(members, said.members, strict=True) if one.arm in arms}


def _union(view: DispatchView, group: Sequence[Subgrid]) -> Subgrid:
    inside = {op for subgrid in group for op in subgrid.members}
    outputs = sorted((output for subgrid in group for output in subgrid.outputs), key=_place)
    return Subgrid(tuple(outputs), tuple(op for op in view.members if op in inside))


def _place(output: Output) -> tuple[int, str]:
    return output.position, str(output.offsets)


# order ----------------------------------------------------------------------------------------------------------------


def _ranked(view: DispatchView, found: Iterable[Subgrid]) -> list[Subgrid]:
    return sorted(found, key=lambda one: _rank(view, one))


def _rank(view: DispatchView, subgrid: Subgrid) -> tuple[int, int, tuple[str, ...], tuple[tuple[int, str], ...]]:
    work = sum(assumed_size(flops(op, view.shapes)) for op in subgrid.members)
    moved = sum(assumed_size(num_bytes(output.value, view.shapes)) for output in subgrid.outputs)
    return -work, -moved, tuple(_names(subgrid.members)), tuple(_place(output) for output in subgrid.outputs)


def _names(members: Iterable[Operation]) -> list[str]:
    return sorted(inner.name for op in members for inner in (op.walk() if is_generic(op) else (op,)))
