"""Each arm of a dispatch as an entry function of its own, so that whatever lowers a dispatch lowers an arm.

Arguments come in order of first use and sizes are renamed `s0, s1, ..` in that order: arms that do the same are the
same text, wherever they stand. A part of a concat becomes `tensor.insert_slice %part into %empty[0, ..]`, which writes
that box and nothing else; where it begins is said beside the function, since the same code serves every place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from xdsl.dialects import tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, DictionaryAttr, IndexType, StringAttr, TensorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, Region, SSAValue

from fuseline.analysis.shapes import argument_attribute
from fuseline.dispatch.arms import Output, Subgrid, is_size, operands_of, subgrids
from fuseline.dispatch.fused_loops import LOOPS_ATTRIBUTE, FusedLoops, members_of
from fuseline.dispatch.loops_attribute import to_attribute
from fuseline.dispatch.view import BOUNDS_ATTRIBUTE, DispatchView
from fuseline.ir.build import Emitter
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


class _Writer:
    """Writes the entry function of one arm."""

    def __init__(self, view: DispatchView, number: int) -> None:
        self.view, self.name = view, f"{view.entry.sym_name.data}_arm_{number}"
        self.block = Block()
        self.values: dict[SSAValue, SSAValue] = {}
        self.tensors: list[BlockArgument] = []
        self.sizes: dict[str, SSAValue] = {}
        self.originals: dict[Operation, Operation] = {}

    def arm(self, subgrid: Subgrid) -> Arm:
        """The arm that makes the outputs of `subgrid`."""
        returned = [self._result(output) for output in subgrid.outputs]
        end = ReturnOp(*returned)
        end.location = self.view.entry.location
        self.block.add_op(end)
        types = [argument.type for argument in self.block.args], [value.type for value in returned]
        entry = FuncOp(self.name, types, Region(self.block), arg_attrs=self._attributes())
        entry.location = self.view.entry.location
        loops = self._loops()
        if loops is not None:
            entry.attributes[LOOPS_ATTRIBUTE] = to_attribute(loops)
        return Arm(
            entry,
            operands=tuple(self.view.tensors.index(tensor_) for tensor_ in self.tensors),
            results=tuple(ArmResult(output.position, _flat(output)) for output in subgrid.outputs),
            sizes=tuple((f"s{i}", self.view.shapes.symbol(name)) for i, name in enumerate(self.sizes)),
            members=subgrid.members,
            originals=self.originals,
        )

    def _loops(self) -> FusedLoops | None:
        """What the dispatch says of the loops of the arm, None where it says nothing of its members alone."""
        said = self.view.said_loops
        old = {new.owner: value.owner for value, new in self.values.items()}
        numbers: dict[object, int] = {op: i for i, op in enumerate(members_of(self.view.entry.body.block))}
        mine = said.of_arm([numbers.get(old.get(op)) for op in members_of(self.block)]) if said is not None else None
        return mine.renamed(self._names()) if mine is not None else None

    def _names(self) -> dict[str, Dim]:
        """The arm's sizes by their names in the dispatch."""
        return {old: symbol(f"s{i}", *_bounds(self.view, old)) for i, old in enumerate(self.sizes)}

    # values -----------------------------------------------------------------------------------------------------------

    def _result(self, output: Output) -> SSAValue:
        value = self._value(output.value)
        return value if output.offsets is None else self._slice(output, value)

    def _slice(self, output: Output, value: SSAValue) -> SSAValue:
        assert isinstance(value.type, TensorType)
        emit = self._emitter()
        empty = emit.empty(value.type.get_element_type(), output.dims, lambda axis: self._size(output.dims[axis]))
        sizes = self.view.shapes.dims(output.value)
        static = [size if isinstance(size, int) else DYNAMIC_INDEX for size in sizes]
        dynamic = [self._size(size) for size in sizes if not isinstance(size, int)]
        zeros, ones = [0] * len(static), [1] * len(static)
        return self._emitter().add(tensor.InsertSliceOp.get(value, empty, static, zeros, ones, sizes=dynamic)).result

    def _value(self, value: SSAValue) -> SSAValue:
        """The arm's copy of a value, and of everything behind it: operands first."""
        pending = [value]
        while pending:
            current = pending[-1]
            missing = [] if current in self.values else self._missing(current)
            if missing:
                pending += reversed(missing)
                continue
            pending.pop()
            if current not in self.values:
                self._copy(current)
        return self.values[value]

    def _missing(self, value: SSAValue) -> list[SSAValue]:
        if isinstance(value, BlockArgument) or is_size(self.view, value):
            return []
        assert isinstance(value, OpResult)
        return [source for source in operands_of(value.op) if source not in self.values]

    def _copy(self, value: SSAValue) -> None:
        if is_size(self.view, value):
            self.values[value] = self._size(self.view.shapes.index(value))
        elif isinstance(value, BlockArgument):
            self.values[value] = self._argument(value)
        else:
            assert isinstance(value, OpResult)
            copy = value.op.clone(self.values, clone_name_hints=False)
            self.originals[copy] = value.op
            self.block.add_op(copy)

    def _emitter(self) -> Emitter:
        emitter = Emitter.at_end(self.block)
        emitter.location = self.view.entry.location
        return emitter

    # arguments --------------------------------------------------------------------------------------------------------

    def _argument(self, value: BlockArgument) -> SSAValue:
        for size in self.view.shapes.dims(value):
            for item in sorted(symbols(size)):
                self._symbol(item)
        self.tensors.append(value)
        return self.block.insert_arg(value.type, len(self.tensors) - 1)

    def _size(self, dim: Dim) -> SSAValue:
        return self._emitter().size(dim, self._symbol)

    def _symbol(self, item: Symbol) -> SSAValue:
        found = self.sizes.get(item.name)
        if found is None:
            found = self.sizes[item.name] = self.block.insert_arg(IndexType(), len(self.block.args))
        return found

    def _attributes(self) -> ArrayAttr[DictionaryAttr]:
        names = {name: f"s{i}" for i, name in enumerate(self.sizes)}
        return ArrayAttr(
            [
                *(self._tensor_attributes(value) for value in self.tensors),
                *(self._size_attributes(names, old) for old in names),
            ]
        )

    def _tensor_attributes(self, value: BlockArgument) -> DictionaryAttr:
        attributes = self.view.entry.arg_attrs
        found: dict[str, Attribute] = dict(attributes.data[value.index].data) if attributes is not None else {}
        if "fuseline.dims" in found:
            found["fuseline.dims"] = ArrayAttr(
                [StringAttr(to_name(substitute(size, self._names()))) for size in self.view.shapes.dims(value)]
            )
        return DictionaryAttr(found)

    def _size_attributes(self, names: dict[str, str], old: str) -> DictionaryAttr:
        argument = self.view.sizes[self.view.size_names.index(old)]
        bounds = argument_attribute(self.view.entry, argument.index, BOUNDS_ATTRIBUTE)
        found: dict[str, Attribute] = {"fuseline.name": StringAttr(names[old])}
        return DictionaryAttr(found if bounds is None else {**found, BOUNDS_ATTRIBUTE: bounds})


def _bounds(view: DispatchView, name: str) -> tuple[int, int | None]:
    (item,) = symbols(view.shapes.symbol(name))
    return item.lo, item.hi


def _flat(output: Output) -> Dim:
    """Elements from the start of the result to the first one of the output."""
    return sum_of(mul(at, product(output.dims[axis + 1 :])) for axis, at in enumerate(output.offsets or ()))
