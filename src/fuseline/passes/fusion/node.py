"""The nodes of a fusion graph: one op that costs something, with its loops and what it reads through them.

node conv ──value──> [expand_shape] ──> node relu        Read(producer=conv, coordinates=(d0, d1, d2, d3))
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from xdsl.dialects import tensor
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr

from fuseline.analysis.cost import is_function
from fuseline.analysis.idioms import Idiom, NearIdiom, idiom_of, near_idiom
from fuseline.analysis.indexing_maps import loops_of
from fuseline.analysis.moves import Coordinate
from fuseline.analysis.operand_reads import operand_reads
from fuseline.analysis.operations import body_operations
from fuseline.analysis.ranks import Rank
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import HEAVY, Kind, StructuredOp, body_ops, captured, is_generic
from fuseline.analysis.walks import Scatter
from fuseline.dispatch.fused_loops import member_loops
from fuseline.ir.dim import Dim, product, upper_bound
from fuseline.ir.fast.direct import ops_of
from fuseline.ir.provenance import provenance
from fuseline.passes.fusion.cached import cached

MOVEMENT = frozenset({Kind.PAD, Kind.SLICE, Kind.CONCAT, Kind.COPY, Kind.TRANSPOSE, Kind.BROADCAST})
"""Ops that compute nothing: reading through them costs no arithmetic."""

BORDERED = {Kind.CONCAT: 40, Kind.PAD: 30}
"""Operations per part of what is told apart by its coordinate: comparisons, a way for runs of lanes and one lane by
lane."""


@dataclass(frozen=True, slots=True)
class Read:
    """One use of a tensor by a node. `coordinates` are per dimension of `value`; `regrouped`: a reshape in between
    mixes dimensions.

    `loops` are the node's loops that address the value, through reshapes too. `filled`: the value is a fill or has no
    contents.
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

    `position` is where it stands in the program, `order` a number that does not depend on how the program is
    written, `digest` what it is by itself (`node_digests.py`). `sized_by` are nodes whose results' sizes the op needs,
    `sizes` the other way round: no data flows, but they come first.
    `structured` is there for structured ops, `unknown_pixels` says that loops have sizes of images that only the run
    knows (`pixel_sizes.py`).
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
    unknown_pixels: bool = False
    id: str = ""
    digest: str = ""
    order: int = 0

    @cached
    def name(self) -> str:
        """The id with the kind, as reports print it."""
        return f"{self.kind.value}.{self.id}"

    @cached
    def nodes(self) -> tuple[str, ...]:
        """The source nodes behind the op."""
        return provenance(self.op)

    @cached
    def captured(self) -> tuple[SSAValue, ...]:
        """What the op's regions use from outside."""
        return tuple(captured(self.op)) if self.op.regions else ()

    @cached
    def parallel(self) -> tuple[int, ...]:
        """The parallel loops."""
        return tuple(i for i, iterator in enumerate(self.iterators) if iterator == "parallel")

    @cached
    def innermost(self) -> int | None:
        """The loop that the first result is written along element by element, one of several iterations: vectors run
        along it. None where there is none."""
        moving = [loop for loop in self.written[0] if loop is not None and self.loops[loop] != 1]
        return moving[-1] if moving else None

    @cached
    def heavy(self) -> bool:
        """Whether this is an op that a dispatch is built around."""
        return self.kind in HEAVY

    @cached
    def reduces(self) -> bool:
        """Whether any loop is a reduction."""
        return "reduction" in self.iterators

    @cached
    def is_sequential(self) -> bool:
        """Whether a kernel of its own makes the op in one walk (`walk_epilogue.py` says what may join it)."""
        return isinstance(self.idiom, Scatter | Rank)

    @cached
    def idiom(self) -> Idiom | None:
        """What the reduction is made as, where that is not as it is written."""
        view = self.structured if self.kind is Kind.REDUCTION else None
        return idiom_of(view, self.loops) if view is not None else None

    @cached
    def near_idiom(self) -> NearIdiom | None:
        """What the reduction is all but, and what is missing."""
        view = self.structured if self.kind is Kind.REDUCTION else None
        return near_idiom(view, self.loops) if view is not None else None

    @cached
    def moves(self) -> bool:
        """Whether the op only moves data."""
        return self.kind in MOVEMENT

    @cached
    def points(self) -> int | None:
        """How many points the loops have at most; None without a bound."""
        return upper_bound(product(self.loops))

    @cached
    def functions(self) -> int:
        """Functions in the op's body (exp, erf), each as dear as a dozen operations."""
        return sum(is_function(op) for op in body_ops(self.structured.op)) if self.structured is not None else 0

    @cached
    def operations(self) -> int:
        """Operations of one evaluation of the body, 0 without one."""
        return body_operations(self.structured.op) if self.structured is not None else 0

    @cached
    def reads_elsewhere(self) -> bool:
        """Whether a read asks for another point than the node's own: anything but its loops, each as it is."""
        plain = AffineDimExpr | AffineConstantExpr
        return any(read.regrouped or not all(isinstance(c, plain) for c in read.coordinates) for read in self.reads)

    @cached
    def picks(self) -> int:
        """How many elements the body picks of each captured tensor, about."""
        tensors = sum(isinstance(value.type, TensorType) for value in self.captured)
        picked = (
            sum(isinstance(op, tensor.ExtractOp) for op in ops_of(self.structured.body))
            if self.structured is not None
            else 0
        )
        return -(-picked // max(1, tensors))

    @cached
    def fusable(self) -> bool:
        """Whether rules may speak about the op at all."""
        return self.kind is not Kind.OTHER

    def result_index(self, value: SSAValue) -> int:
        """Which result `value` is. Raises ValueError for that of another op."""
        if isinstance(value, OpResult) and value.op is self.op:
            return value.index
        raise ValueError(f"{value} is no result of {self.op.name}")


def node_operations(node: Node) -> int:
    """Operations of one evaluation of an op."""
    return node.operations or BORDERED.get(node.kind, 2) * max(1, len(node.reads))


def plain_coordinate(coordinate: Coordinate) -> bool:
    """Whether a coordinate is one loop or a constant."""
    return isinstance(coordinate, AffineDimExpr | AffineConstantExpr)


def node_of(op: Operation, op_kind: Kind, position: int, shapes: ShapeAnalysis) -> Node:
    """The node of an op at a position in the program, not yet connected."""
    return (
        _structured_node(op, op_kind, position, shapes)
        if is_generic(op)
        else _plain_node(op, op_kind, position, shapes)
    )


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


def node_reads(node: Node, shapes: ShapeAnalysis) -> Iterable[tuple[SSAValue, tuple[Coordinate, ...]]]:
    """The tensors a node reads, each with the node's coordinates, None where it may be read anywhere along a dimension.
    What a moving op reads at other than plain loops is not told apart."""
    for value, at in operand_reads(node.op, shapes, moves=bool(node.loops)):
        if at is None:
            assert isinstance(value.type, TensorType)
            yield value, (None,) * len(value.type.get_shape())
        else:
            plain = node.structured is None
            yield value, tuple(None if plain and not isinstance(step, AffineDimExpr) else step for step in at)


_RANK = {
    Kind.CONTRACTION: 5,
    Kind.CONVOLUTION: 5,
    Kind.DEPTHWISE: 4,
    Kind.POOLING: 3,
    Kind.REDUCTION: 2,
    Kind.ELEMENTWISE: 1,
}


def root_rank(node: Node) -> tuple[int, int, int]:
    """What decides which member a dispatch is built around: the most of it."""
    return _RANK.get(node.kind, 0), len(node.loops), node.order
