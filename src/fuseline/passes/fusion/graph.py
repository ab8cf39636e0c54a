"""The fusion graph: the ops of a function frozen as nodes with structural ids, and who reads whom through which loops.

Nodes are the ops that cost something. What is free to repeat (constants, fills, empties, index arithmetic) is not a
node, and a view (a contiguous slice, a reshape that only adds or drops unit dimensions) is looked through: a `Read`
speaks of the dimensions of the value that a node wrote.

The ids are canonical (`node_ids.py`): names, weights and the order of ops do not enter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Operation, OpResult, SSAValue

from fuseline.analysis.indexing_maps import dims_of
from fuseline.analysis.moves import AffineCoordinates, Coordinate, sources
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import FREE, Kind, captured, kind
from fuseline.analysis.views import is_view
from fuseline.ir.dim import Dim, product
from fuseline.ir.element_types import element_bytes
from fuseline.ir.fast.direct import operand_of, operands_of, ops_of, users_of_value
from fuseline.ir.fast.identity import by_identity
from fuseline.ir.fuel import Fuel
from fuseline.passes.fusion.cached import cached
from fuseline.passes.fusion.copied_producers import copied
from fuseline.passes.fusion.node import Node, Read, node_of, node_reads
from fuseline.passes.fusion.node_ids import assign_ids
from fuseline.passes.fusion.pixel_sizes import mark_pixels
from fuseline.passes.fusion.prologues import Prologues


class FusionGraph:
    """The nodes of one block in program order, with `shapes` for their sizes. Nothing here changes after it is built.

    `taken`: see `assign_ids`; for the functions of one program. `code_limits`: lower ones than the target's, by the
    name of a node. `fuel`: what a compile has left for merges.
    """

    def __init__(
        self,
        block: Block,
        shapes: ShapeAnalysis,
        taken: dict[str, int] | None = None,
        code_limits: Mapping[str, int] | None = None,
        fuel: Fuel | None = None,
    ) -> None:
        self.block, self.shapes, self.code_limits, self.fuel = block, shapes, code_limits or {}, fuel
        self.prologues = Prologues(shapes)
        self.nodes: list[Node] = []
        # By the identity of ops and values, all of which stay: their hash is that in Python.
        self._by_op: dict[int, Node] = {}
        self._bytes: dict[int, Dim] = {}
        self._behind: dict[int, frozenset[Node]] = {}
        for op in ops_of(block):
            self._add(op)
        for node in self.nodes:
            self._connect(node)
        mark_pixels(self.nodes)
        self._fingerprint = assign_ids(self.nodes, taken)

    def node_of(self, op: Operation) -> Node | None:
        """The node of `op`, None for a free op, a reshape or a terminator."""
        return self._by_op.get(id(op))

    def fingerprint(self) -> str:
        """A hash of the whole graph; equal for equal graphs however they are ordered, named or weighted."""
        return self._fingerprint

    def is_constant(self, value: SSAValue) -> bool:
        """Whether the value is known at compile time."""
        return isinstance(value, OpResult) and kind(value.op) is Kind.CONSTANT

    def has_copies(self, op: Operation) -> bool:
        """Whether there are several nodes like that of `op`, each for readers of its own."""
        return self._by_op.get(id(op)) in self._copied

    @cached
    def _copied(self) -> frozenset[Node]:
        return copied(self.nodes)

    def num_bytes(self, value: SSAValue) -> Dim:
        """The size of a tensor in bytes."""
        found = self._bytes.get(id(value))
        if found is None:
            assert isinstance(value.type, TensorType)
            found = self._bytes[id(value)] = product((*self.shapes.dims(value), element_bytes(value)))
        return found

    def _add(self, op: Operation) -> None:
        op_kind = kind(op)
        if op_kind in FREE or not op.results or is_view(op):
            return
        node = node_of(op, op_kind, len(self.nodes), self.shapes)
        self.nodes.append(node)
        self._by_op[id(op)] = node

    def _connect(self, node: Node) -> None:
        for value, coordinates in node_reads(node, self.shapes):
            read = self._read(node, value, coordinates)
            node.reads.append(read)
            if read.producer is not None:
                read.producer.readers.append(read)
        for source in sorted(
            self._size_sources((*operands_of(node.op), *node.captured)), key=lambda other: other.position
        ):
            node.sized_by.append(source)
            source.sizes.append(node)
        node.escapes = any(self._escapes(result) for result in node.op.results)

    def _size_sources(self, used: Iterable[SSAValue]) -> frozenset[Node]:
        """The nodes behind those of the values that free ops make (sizes, inits), and those that tell a size."""
        behind: list[frozenset[Node]] = []
        for value in used:
            if type(value) is OpResult:
                maker = self._by_op.get(id(value.op))
                if maker is None:
                    behind += [self._behind_free(value.op)] if operands_of(value.op) else []
                elif not isinstance(value.type, TensorType):
                    behind.append(frozenset((maker,)))
        return frozenset[Node]().union(*behind) if behind else _NO_NODES

    def _behind_free(self, op: Operation) -> frozenset[Node]:
        found = self._behind.get(id(op))
        if found is None:
            view = is_view(op)
            values = operands_of(op)[1:] if view else operands_of(op)  # what a view views is read
            bases = [
                value if view else _viewed(value) for value in values
            ]  # what a free op asks of a view, it asks of what is viewed
            direct = {
                self._by_op[id(value.op)] for value in bases if type(value) is OpResult and id(value.op) in self._by_op
            }
            found = self._behind[id(op)] = self._size_sources(_used_by(op)) | direct
        return found

    def _read(self, node: Node, value: SSAValue, coordinates: tuple[Coordinate, ...]) -> Read:
        loops = _loops_in(coordinates)
        kind_of_coordinates = AffineCoordinates()
        while type(value) is OpResult and is_view(value.op):
            viewed = sources(value.op, coordinates, self.shapes, kind_of_coordinates)
            assert viewed is not None
            value, coordinates = viewed[0].value, viewed[0].at
        producer = self._by_op.get(id(value.op)) if type(value) is OpResult else None
        filled = producer is None and type(value) is OpResult and kind(value.op) in (Kind.FILL, Kind.EMPTY)
        return Read(value, producer, node, coordinates, kind_of_coordinates.regrouped, loops, filled)

    def _escapes(self, value: SSAValue) -> bool:
        for user in users_of_value(value):
            if is_view(user):
                if self._escapes(user.results[0]):
                    return True
            elif user.parent is self.block and not user.results:
                return True
        return False


_NO_NODES = frozenset[Node]()


def _viewed(value: SSAValue) -> SSAValue:
    """The value behind the views that `value` is one of."""
    while type(value) is OpResult and is_view(value.op):
        value = operand_of(value.op, 0)
    return value


@by_identity
def _loops_in(coordinates: tuple[Coordinate, ...]) -> frozenset[int]:
    return frozenset([loop for coordinate in coordinates if coordinate is not None for loop in dims_of(coordinate)])


def _used_by(op: Operation) -> tuple[SSAValue, ...]:
    return (*operands_of(op), *(captured(op) if op.regions else ()))
