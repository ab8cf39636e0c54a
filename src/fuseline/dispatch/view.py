"""What a target sees of one outlined dispatch: arguments, runtime sizes, ops in order, the root, results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from xdsl.dialects import arith, func
from xdsl.dialects.builtin import IndexType, StringAttr, TensorType
from xdsl.ir import BlockArgument, Operation, SSAValue

from fuseline.analysis.idioms import Idiom, idiom_of
from fuseline.analysis.shapes import ShapeAnalysis, argument_attribute
from fuseline.analysis.structural_key import structural_digest
from fuseline.analysis.structured import COMPUTING, FREE, StructuredOp, is_generic, kind
from fuseline.dispatch.body_classes import BodyClasses
from fuseline.dispatch.derived_loops import derived_loops
from fuseline.dispatch.fused_loops import LOOPS_ATTRIBUTE, FusedLoops, require_match
from fuseline.dispatch.loop_claims import require_shared
from fuseline.dispatch.loops_attribute import from_attribute
from fuseline.dispatch.member_classes import with_classes
from fuseline.dispatch.naming import what_it_does
from fuseline.dispatch.result_boxes import returned
from fuseline.ir.dim import Dim, symbol
from fuseline.weight_layouts import SharedLayout

ROOT_ATTRIBUTE = "fuseline.root"
"""Marks the op whose loops a dispatch tiles; set when the region is formed."""

MEMBERS_ATTRIBUTE = "fuseline.members"
"""On a dispatch region and on the dispatch made of it: the fusion graph's ids of its members, in order. Where one op
stands for several (`fuse-elementwise-bodies`), a list of theirs."""

BOUNDS_ATTRIBUTE = "fuseline.bounds"
"""On an index argument: what the size can be, `lo..hi` or `lo..`."""

SCALAR_ATTRIBUTE = "fuseline.scalar"
"""On a tensor argument of rank 0: a number, no NaN, that was a constant of the body before several dispatches came to
share it. Nothing writes it, and `tensor.extract` outside all bodies reads it."""

_SERIAL = "s"
"""Ends the id of a class whose kernels are parts of larger ones: those have blocks of their own."""


@dataclass(frozen=True)
class DispatchView:
    """The entry function of one executable: tensor arguments first, then index arguments (runtime sizes), tensors
    returned.

    `serial`: one thread runs all of it, as a part of a larger kernel, so that there is nothing to share out. `shared`:
    tensor arguments, by position, that lie as other kernels asked for them.
    """

    entry: func.FuncOp
    serial: bool = False
    shared: tuple[tuple[int, SharedLayout], ...] = ()

    @cached_property
    def shapes(self) -> ShapeAnalysis:
        """Sizes of all values in terms of the names of the index arguments."""
        symbols: dict[str, Dim] = {}
        for argument, name in zip(self.sizes, self.size_names, strict=True):
            bounds = argument_attribute(self.entry, argument.index, BOUNDS_ATTRIBUTE)
            low, _, high = bounds.data.partition("..") if isinstance(bounds, StringAttr) else ("1", "", "")
            symbols[name] = symbol(name, int(low), int(high) if high else None)
        return ShapeAnalysis(symbols)

    @cached_property
    def kernel_class(self) -> str:
        """The class of its kernel as it is written, `kind.id`: the id is equal wherever the structure is, extents and
        types included, in every process and model; which family lowers it, for which machine and on how many threads
        does not enter."""
        digest = structural_digest(self.entry)
        return f"{what_it_does(self.members, self.root)}.{digest}{_SERIAL if self.serial else ''}"

    @cached_property
    def loops(self) -> FusedLoops:
        """The loops that the members share, as those of one arm: as the entry says, or derived where it says nothing,
        or several arms of what is one here."""
        said, body = self.said_loops, self.entry.body.block
        found = said if said is not None and len(said.grids) == 1 else derived_loops(body, self.shapes)
        return found if found.classes else with_classes(found, body, self.shapes, self.entry.sym_name.data)

    @cached_property
    def classes(self) -> BodyClasses:
        """The classes of the loops, by op and by value."""
        return BodyClasses(self.loops, self.entry.body.block, self.shapes)

    @cached_property
    def said_loops(self) -> FusedLoops | None:
        """What the entry says of its loops. Raises FuselineError (E0302) where that is not so."""
        body, attribute = self.entry.body.block, self.entry.attributes.get(LOOPS_ATTRIBUTE)
        if attribute is None:
            return None
        name = self.entry.sym_name.data
        loops = from_attribute(attribute, self.shapes.symbols, name)
        require_match(loops, body, self.shapes, name)
        require_shared(loops, body, self.shapes, name, code="E0302")
        return loops

    @cached_property
    def tensors(self) -> tuple[BlockArgument, ...]:
        """The tensor arguments, in binding order."""
        return tuple(arg for arg in self.entry.body.block.args if isinstance(arg.type, TensorType))

    @cached_property
    def sizes(self) -> tuple[BlockArgument, ...]:
        """The index arguments, in the order of the kernel's `sizes` array."""
        return tuple(arg for arg in self.entry.body.block.args if isinstance(arg.type, IndexType))

    @cached_property
    def size_names(self) -> tuple[str, ...]:
        """The symbol behind each index argument."""
        found = [argument_attribute(self.entry, arg.index, "fuseline.name") for arg in self.sizes]
        return tuple(
            name.data if isinstance(name, StringAttr) else f"arg{arg.index}"
            for name, arg in zip(found, self.sizes, strict=True)
        )

    def shared_layout(self, argument: SSAValue) -> SharedLayout | None:
        """How `argument` lies where that is as another kernel asked; None for row-major elements."""
        return next((layout for position, layout in self.shared if self.tensors[position] is argument), None)

    def is_constant(self, argument: BlockArgument) -> bool:
        """Whether every call site passes a constant for `argument`, so that its bytes may be laid out at compile
        time."""
        return self._says(argument, "fuseline.constant")

    def is_scalar(self, argument: SSAValue) -> bool:
        """Whether `argument` is a number that stands for a constant of the body (`SCALAR_ATTRIBUTE`)."""
        if not isinstance(argument, BlockArgument) or argument.owner is not self.entry.body.block:
            return False
        return self._says(argument, SCALAR_ATTRIBUTE)

    def _says(self, argument: BlockArgument, name: str) -> bool:
        attributes = self.entry.arg_attrs
        return attributes is not None and name in attributes.data[argument.index].data

    @cached_property
    def results(self) -> tuple[SSAValue, ...]:
        """The tensors that the dispatch writes, in binding order after the arguments."""
        return returned(self.entry.body.block)

    @cached_property
    def members(self) -> tuple[Operation, ...]:
        """The ops that do something, in order: no empties, fills, constants, index arithmetic or the return."""
        return tuple(
            op
            for op in self.entry.body.block.ops
            if not isinstance(op, func.ReturnOp | arith.ConstantOp) and kind(op) not in FREE
        )

    @cached_property
    def root(self) -> Operation | None:
        """The op whose loops the dispatch tiles (see `root_of`)."""
        return root_of(self.members)

    @cached_property
    def root_view(self) -> StructuredOp | None:
        """The root as a structured op, None where it is not a generic."""
        return StructuredOp(self.root) if is_generic(self.root) else None

    @cached_property
    def idiom(self) -> Idiom | None:
        """What the root is made as, where that is not as it is written."""
        root = self.root_view
        return idiom_of(root, root.loops(self.shapes)) if root is not None else None

    def structured(self, op: Operation) -> StructuredOp | None:
        """A member as a structured op, None where it is not a generic."""
        return StructuredOp(op) if is_generic(op) else None


def root_of(members: Sequence[Operation]) -> Operation | None:
    """The op whose loops are tiled: the marked one, else the last that reduces, else the last generic, else the last
    op."""
    marked = [op for op in members if ROOT_ATTRIBUTE in op.attributes]
    computing = [op for op in members if kind(op) in COMPUTING]
    generics = [op for op in members if is_generic(op)]
    for candidates in (marked, computing, generics, members):
        if candidates:
            return candidates[-1]
    return None
