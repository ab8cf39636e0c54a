"""The fusion graph: the ops of a function frozen as nodes with structural ids, and who reads whom through which loops.

Nodes are the ops that cost something. What is free to repeat (constants, fills, empties, index arithmetic) is not a node, and a view (a contiguous
slice, a reshape that only adds or drops unit dimensions) is looked through: a `Read` speaks of the dimensions of the value that a node wrote.

    node conv ──value──> [expand_shape] ──> node relu        Read(producer=conv, coordinates=(d0, d1, d2, d3))

The ids are canonical (`node_ids.py`): names, weights and the order of ops do not enter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from xdsl.dialects import tensor
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Operation, OpResult, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr

from fuseline.analysis.moves import AffineCoordinates, Coordinate, sources
from fuseline.analysis.operations import body_operations
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import Kind, StructuredOp, captured, dims_of, is_generic, kind, loops_of
from fuseline.analysis.views import is_view
from fuseline.analysis.walks import walk_of
from fuseline.dispatch.fused_loops import member_loops
from fuseline.ir.dim import Dim, product, upper_bound
from fuseline.ir.fast.direct import operand_of, operands_of, ops_of, users_of_value
from fuseline.ir.fast.identity import by_identity
from fuseline.ir.provenance import provenance
from fuseline.passes.fusion.lazily import lazily
from fuseline.passes.fusion.node_ids import assign_ids
from fuseline.passes.fusion.prologues import Prologues

FREE = frozenset({Kind.CONSTANT, Kind.EMPTY, Kind.FILL, Kind.SCALAR})
"""Cloned into every dispatch that uses them."""

HEAVY = frozenset({Kind.CONTRACTION, Kind.CONVOLUTION, Kind.DEPTHWISE, Kind.POOLING})
"""Ops whose loops a dispatch tiles; a dispatch has at most one."""

PARALLEL_KINDS = frozenset({Kind.ELEMENTWISE, Kind.COPY, Kind.TRANSPOSE, Kind.BROADCAST, Kind.GATHER})
MOVEMENT = frozenset({Kind.PAD, Kind.SLICE, Kind.CONCAT, Kind.COPY, Kind.TRANSPOSE, Kind.BROADCAST})
"""Ops that compute nothing: reading through them costs no arithmetic."""


@dataclass(frozen=True, slots=True)
class Read:
    """One use of a tensor by a node. `coordinates` are per dimension of `value`; `regrouped`: a reshape in between mixes dimensions.

    `loops` are the node's loops that address the value, through reshapes too. `filled`: the value is a fill or has no contents.
    """

    value: SSAValue
    producer: Node | None
    consumer: Node
    coordinates: tuple[Coordinate, ...]
    regrouped: bool = False
    loops: frozenset[int] = frozenset()
    filled: bool = False


@dataclass(eq=False)
class Node:
    """One op that costs something. `written[r][t]` is the loop that writes dimension `t` of result `r`.

    `position` is the place in the program, `order` one that does not depend on how the program is written. `sized_by` are nodes whose results'
    sizes the op needs, `sizes` the other way round: no data flows, but they come first. `structured` is there for structured ops.
    """

    op: Operation
    kind: Kind
    position: int
    loops: tuple[Dim, ...]
    iterators: tuple[str, ...]
    written: tuple[tuple[int | None, ...], ...]
    structured: StructuredOp | None = None
    reads: list[Read] = field(default_factory=list[Read])
    readers: list[Read] = field(default_factory=list[Read])
    sized_by: list[Node] = field(default_factory=list["Node"])
    sizes: list[Node] = field(default_factory=list["Node"])
    escapes: bool = False
    id: str = ""
    order: int = 0

    @lazily
    def name(self) -> str:
        """The id with the kind, as reports print it."""
        return f"{self.kind.value}.{self.id}"

    @lazily
    def nodes(self) -> tuple[str, ...]:
        """The source nodes behind the op."""
        return provenance(self.op)

    @lazily
    def captured(self) -> tuple[SSAValue, ...]:
        """What the op's regions use from outside."""
        return tuple(captured(self.op)) if self.op.regions else ()

    @lazily
    def parallel(self) -> tuple[int, ...]:
        """The parallel loops."""
        return tuple(i for i, iterator in enumerate(self.iterators) if iterator == "parallel")

    @lazily
    def heavy(self) -> bool:
        """Whether this is an op that a dispatch is built around."""
        return self.kind in HEAVY

    @lazily
    def reduces(self) -> bool:
        """Whether any loop is a reduction."""
        return "reduction" in self.iterators

    @lazily
    def walked(self) -> bool:
        """Whether a kernel of its own makes the op in one walk, so that nothing else fits into its dispatch."""
        return self.kind is Kind.REDUCTION and self.structured is not None and walk_of(self.structured) is not None

    @lazily
    def moves(self) -> bool:
        """Whether the op only moves data."""
        return self.kind in MOVEMENT

    @lazily
    def points(self) -> int | None:
        """How many points the loops have at most; None without a bound."""
        return upper_bound(product(self.loops))

    @lazily
    def operations(self) -> int:
        """Operations of one evaluation of the body, 0 without one."""
        return body_operations(self.structured.op) if self.structured is not None else 0

    @lazily
    def picks(self) -> int:
        """How many elements the body picks of each captured tensor, about."""
        tensors = sum(isinstance(value.type, TensorType) for value in self.captured)
        picked = sum(isinstance(op, tensor.ExtractOp) for op in ops_of(self.structured.body)) if self.structured is not None else 0
        return -(-picked // max(1, tensors))

    @lazily
    def fusable(self) -> bool:
        """Whether rules may speak about the op at all."""
        return self.kind is not Kind.OTHER

    def result_index(self, value: SSAValue) -> int:
        """Which result `value` is."""
        if isinstance(value, OpResult) and value.op is self.op:
            return value.index
        raise ValueError(f"{value} is no result of {self.op.name}")


class FusionGraph:
    """The nodes of one block in program order, with `shapes` for their sizes. Nothing here changes after it is built.

    `taken`: see `assign_ids`; for the functions of one program. `code_limits`: lower ones than the target's, by the name of a node.
    """

    def __init__(
        self, block: Block, shapes: ShapeAnalysis, taken: dict[str, int] | None = None, code_limits: Mapping[str, int] | None = None
    ) -> None:
        self.block, self.shapes, self.code_limits = block, shapes, code_limits or {}
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
        place = op_kind, len(self.nodes), self.shapes
        node = _structured_node(op, *place) if is_generic(op) else _plain_node(op, *place)
        self.nodes.append(node)
        self._by_op[id(op)] = node

    def _connect(self, node: Node) -> None:
        for value, coordinates in _operand_reads(node, self.shapes):
            read = self._read(node, value, coordinates)
            node.reads.append(read)
            if read.producer is not None:
                read.producer.readers.append(read)
        for source in sorted(self._size_sources((*operands_of(node.op), *node.captured)), key=lambda other: other.position):
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
            bases = [value if view else _viewed(value) for value in values]  # what a free op asks of a view, it asks of what is viewed
            direct = {self._by_op[id(value.op)] for value in bases if type(value) is OpResult and id(value.op) in self._by_op}
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


def element_bytes(value: SSAValue) -> int:
    """The stored size of one element in bytes (i1 takes one byte, index eight)."""
    assert isinstance(value.type, TensorType)
    element = value.type.get_element_type()
    width = getattr(element, "bitwidth", 64)
    return max(1, int(width) // 8)


def _used_by(op: Operation) -> tuple[SSAValue, ...]:
    return (*operands_of(op), *(captured(op) if op.regions else ()))


def plain_coordinate(coordinate: Coordinate) -> bool:
    """Whether a coordinate is one loop or a constant."""
    return isinstance(coordinate, AffineDimExpr | AffineConstantExpr)


def _structured_node(op: Operation, op_kind: Kind, position: int, shapes: ShapeAnalysis) -> Node:
    assert is_generic(op)
    view = StructuredOp(op)
    written = tuple([tuple(loops_of(map_.results)) for map_ in view.output_maps])
    return Node(op, op_kind, position, view.loops(shapes), view.iterators, written, view)


def _plain_node(op: Operation, op_kind: Kind, position: int, shapes: ShapeAnalysis) -> Node:
    """Pads, slices and concats run over the space of their result; any other op is opaque."""
    dims = member_loops(op, shapes)
    written = tuple(tuple(range(len(dims))) for _ in op.results)
    return Node(op, op_kind, position, dims, ("parallel",) * len(dims), written)


def _operand_reads(node: Node, shapes: ShapeAnalysis) -> Iterable[tuple[SSAValue, tuple[Coordinate, ...]]]:
    """The tensors a node reads, each with the node's coordinates; an init that the body ignores is not read."""
    op, view = node.op, node.structured
    if view is not None:
        for value, map_, argument in zip(view.operands, view.maps, view.body.args, strict=True):
            if argument.first_use is not None:
                yield value, tuple(map_.results)
    else:
        yield from _plain_reads(op, len(node.loops), shapes)
    for value in node.captured:
        if isinstance(value.type, TensorType):
            yield value, (None,) * len(value.type.get_shape())


def _plain_reads(op: Operation, rank: int, shapes: ShapeAnalysis) -> Iterable[tuple[SSAValue, tuple[Coordinate, ...]]]:
    """The tensors that an op without a body reads, over its `rank` loops: those of its result. What is no plain loop is not told apart."""
    found = sources(op, [AffineDimExpr(i) for i in range(rank)], shapes, AffineCoordinates()) if rank else None
    if found is not None:
        yield from ((source.value, tuple(c if isinstance(c, AffineDimExpr) else None for c in source.at)) for source in found)
        return
    for value in op.operands:
        if isinstance(value.type, TensorType):
            yield value, (None,) * len(value.type.get_shape())
