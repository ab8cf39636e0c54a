"""Where a kernel touches its bindings: each read and write with the place in the tree of blocks that it stands in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from fuseline.targets.cpu.kernel_ir.types import Address, Block, Kernel, Loop, Operand, Value, When, While

Node: TypeAlias = Loop | While | When

_READS = frozenset({"load", "gather", "atomic_load"})
_WRITES = frozenset({"store", "scatter", "atomic"})
_INDEXED = frozenset({"gather", "scatter"})


class Step(NamedTuple):
    """One step down the tree: child `child` of a block, `node` (None: the access itself), and which of its blocks goes
    on (of a branch: 0 then, 1 otherwise)."""

    child: int
    node: Node | None
    side: int = 0


class Access(NamedTuple):
    """`lanes` elements from `base + offset` on of a binding are read or `written`, of them the first `active` (None:
    all), by the operation at the end of `path`.

    `indexed`: elements lie where a vector of indices says, from there on.
    """

    binding: int
    written: bool
    base: Operand
    offset: int
    lanes: int
    active: Operand | None
    indexed: bool
    path: tuple[Step, ...]

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The loops and branches around it, outermost first."""
        return tuple(step.node for step in self.path if step.node is not None)


def accesses(kernel: Kernel) -> list[Access]:
    """All reads and writes of bindings, in program order."""
    return list(_of_block(kernel.body, ()))


def _of_block(block: Block, path: tuple[Step, ...]) -> Iterator[Access]:
    for child, op in enumerate(block.ops):
        if isinstance(op, Loop):
            yield from _of_block(op.body, (*path, Step(child, op)))
        elif isinstance(op, When):
            yield from _of_block(op.then, (*path, Step(child, op)))
            yield from _of_block(op.otherwise, (*path, Step(child, op, 1)))
        elif isinstance(op, While):
            yield from _of_block(op.test, (*path, Step(child, op)))
            yield from _of_block(op.body, (*path, Step(child, op, 1)))
        elif op.op in _READS or op.op in _WRITES:
            yield from _of_address(op, op.args[0], (*path, Step(child, None)))


def _of_address(op: Value, address: Address, path: tuple[Step, ...]) -> Iterator[Access]:
    """The access at an address; at each side of one that is chosen at run time."""
    root = address.root
    if isinstance(root, Value):
        for side in root.args[1:]:
            moved = Address(side.root, side.dtype, side.index, side.offset + address.offset)
            yield from _of_address(op, moved, path) if address.index == 0 else _somewhere(op, side, path)
    elif root.kind == "binding":
        lanes = op.args[3].type.lanes if op.op in ("store", "scatter") else op.type.lanes
        active = op.args[1] if op.op in ("load", "store", "gather", "scatter") else None
        written, indexed = op.op in _WRITES, op.op in _INDEXED
        yield Access(root.position, written, address.index, address.offset, lanes, active, indexed, path)


def _somewhere(op: Value, side: Address, path: tuple[Step, ...]) -> Iterator[Access]:
    """An access that moves from a chosen address: anywhere in its buffer."""
    for found in _of_address(op, side, path):
        yield found._replace(indexed=True)


def in_order(first: Access, second: Access) -> bool | None:
    """Whether `first` comes before `second` within one iteration of all loops around both; None where only one of them
    happens."""
    for a, b in zip(first.path, second.path, strict=False):
        if a.child != b.child:
            return a.child < b.child
        if a.side != b.side:
            return None if isinstance(a.node, When) else a.side < b.side
    return True


def common_nodes(first: Access, second: Access) -> list[Node]:
    """The loops and branches around both."""
    found: list[Node] = []
    for a, b in zip(first.nodes, second.nodes, strict=False):
        if a is not b:
            break
        found.append(a)
    return found
