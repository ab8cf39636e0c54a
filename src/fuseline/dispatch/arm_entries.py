"""Each arm of a dispatch as an entry function of its own, so that whatever lowers a dispatch lowers an arm.

Arguments come in order of first use and sizes are renamed `s0, s1, ..` in that order: arms that do the same are the
same text, wherever they stand. A part of a concat becomes `tensor.insert_slice %part into %empty[0, ..]`, which writes
that box and nothing else, or stays what it is where it lies in one piece; where it begins is said beside the function,
since the same code serves every place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ArrayAttr, IndexType, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from fuseline.dispatch.arms import Output, Subgrid, subgrids
from fuseline.dispatch.entry_writer import EntryWriter
from fuseline.dispatch.fused_loops import LOOPS_ATTRIBUTE, FusedLoops, members_of
from fuseline.dispatch.loops_attribute import to_attribute
from fuseline.dispatch.view import DispatchView
from fuseline.ir.dim import Dim, Symbol, mul, product, substitute, sum_of, symbol, symbols
from fuseline.ir.dim_json import to_name


@dataclass(frozen=True)
class ArmResult:
    """Where a result of an arm lies: `offset` elements from the start of the dispatch's result `position` (in the
    dispatch's sizes)."""

    position: int
    offset: Dim = 0


@dataclass(frozen=True)
class Arm:
    """One arm of a dispatch.

    Attributes:
        entry: an ordinary entry function.
        operands: for each of its tensor arguments, which one of the dispatch it is.
        results: for each of its results, where it lies.
        sizes: the arm's size names, in order, and what they are in the dispatch's.
        members: the dispatch's ops that it computes.
        originals: the dispatch's op behind each op of `entry` that is a copy of one.
        is_whole: whether the entry is that of the dispatch.
    """

    entry: FuncOp
    operands: tuple[int, ...]
    results: tuple[ArmResult, ...]
    sizes: tuple[tuple[str, Dim], ...]
    members: tuple[Operation, ...] = field(default=(), compare=False)
    originals: Mapping[Operation, Operation] = field(default_factory=dict[Operation, Operation], compare=False)
    is_whole: bool = False


def split_arms(entry: FuncOp) -> list[Arm]:
    """The arms of a dispatch in canonical order; a dispatch that is of a piece is its own only arm."""
    view = DispatchView(entry)
    found = subgrids(view)
    if len(found) == 1 and not any(output.offsets for output in found[0].outputs):
        results = tuple(ArmResult(position) for position in range(len(view.results)))
        sizes = tuple((name, view.shapes.symbol(name)) for name in view.size_names)
        return [Arm(entry, tuple(range(len(view.tensors))), results, sizes, view.members, is_whole=True)]
    return [_Writer(view, number).arm(subgrid) for number, subgrid in enumerate(found)]


class _Writer(EntryWriter):
    """Writes the entry function of one arm."""

    def __init__(self, view: DispatchView, number: int) -> None:
        super().__init__(view)
        self.name = f"{view.entry.sym_name.data}_arm_{number}"
        self.originals: dict[Operation, Operation] = {}

    def arm(self, subgrid: Subgrid) -> Arm:
        """The arm that makes the outputs of `subgrid`."""
        entry = self.function(self.name, [self._result(output) for output in subgrid.outputs])
        loops = self._loops()
        if loops is not None:
            entry.attributes[LOOPS_ATTRIBUTE] = to_attribute(loops)
        return Arm(
            entry,
            operands=tuple(self.view.tensors.index(argument) for argument in self.arguments),
            results=tuple(ArmResult(output.position, _flat(output)) for output in subgrid.outputs),
            sizes=tuple((f"s{i}", self.view.shapes.symbol(name)) for i, name in enumerate(self.sizes)),
            members=subgrid.members,
            originals=self.originals,
        )

    def _loops(self) -> FusedLoops | None:
        """What the dispatch says of the loops of the arm, None where it says nothing of its members alone."""
        said = self.view.said_loops
        old = {new.owner: value.owner for value, new in self.copies.items()}
        numbers: dict[object, int] = {op: i for i, op in enumerate(members_of(self.view.entry.body.block))}
        mine = said.of_arm([numbers.get(old.get(op)) for op in members_of(self.block)]) if said is not None else None
        return mine.renamed(self._names()) if mine is not None else None

    def _names(self) -> dict[str, Dim]:
        """The arm's sizes by their names in the dispatch."""
        return {old: symbol(f"s{i}", *_bounds(self.view, old)) for i, old in enumerate(self.sizes)}

    def _result(self, output: Output) -> SSAValue:
        value, sizes = self.copy_of(output.value), self.view.shapes.dims(output.value)
        return value if output.offsets is None or _is_run(output, sizes) else self.boxed(value, output.dims, sizes)

    def add(self, old: Operation, new: Operation) -> None:
        """Append a copy, whose original is kept."""
        self.originals[new] = old
        super().add(old, new)

    def argument(self, value: SSAValue, type_: Attribute) -> SSAValue:
        """A new tensor argument, and index arguments for the symbols of its sizes."""
        for size in self.view.shapes.dims(value):
            for item in sorted(symbols(size)):
                self.symbol(item)
        return super().argument(value, type_)

    def symbol(self, symbol: Symbol) -> SSAValue:
        """The index argument of a symbol, made when it is first asked for."""
        found = self.sizes.get(symbol.name)
        if found is None:
            found = self.sizes[symbol.name] = self.block.insert_arg(IndexType(), len(self.block.args))
        return found

    def tensor_attributes(self, value: SSAValue) -> dict[str, Attribute]:
        """Those of the dispatch, with the arm's names of sizes."""
        assert isinstance(value, BlockArgument)
        attributes = self.view.entry.arg_attrs
        found: dict[str, Attribute] = dict(attributes.data[value.index].data) if attributes is not None else {}
        if "fuseline.dims" in found:
            found["fuseline.dims"] = ArrayAttr(
                [StringAttr(to_name(substitute(size, self._names()))) for size in self.view.shapes.dims(value)]
            )
        return found

    def size_attributes(self, name: str) -> dict[str, Attribute]:
        """Those of the dispatch, under the arm's name."""
        return {**super().size_attributes(name), "fuseline.name": StringAttr(f"s{list(self.sizes).index(name)}")}


def _bounds(view: DispatchView, name: str) -> tuple[int, int | None]:
    (item,) = symbols(view.shapes.symbol(name))
    return item.lo, item.hi


def _is_run(output: Output, sizes: Sequence[Dim]) -> bool:
    """Whether what is stored, of `sizes`, lies in one piece: all of the result's dimensions behind the slowest one that
    it cuts. Then it is a whole tensor, that begins elsewhere."""
    cut = next((axis for axis, size in enumerate(output.dims) if size != 1), 0)
    return all(size == whole for size, whole in zip(sizes[cut + 1 :], output.dims[cut + 1 :], strict=True))


def _flat(output: Output) -> Dim:
    """Elements from the start of the result to the first one of the output."""
    return sum_of(mul(at, product(output.dims[axis + 1 :])) for axis, at in enumerate(output.offsets or ()))
