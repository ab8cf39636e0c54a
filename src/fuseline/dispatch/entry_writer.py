"""Writing the entry function of a part of a dispatch: an arm, or a sub-kernel of it.

Tensor arguments come in order of first use, sizes behind them. What no part computes anew is copied with everything
behind it, once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from xdsl.dialects import tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, DictionaryAttr, StringAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, Region, SSAValue

from fuseline.analysis.shapes import argument_attribute
from fuseline.dispatch.arms import is_size, operands_of
from fuseline.dispatch.view import BOUNDS_ATTRIBUTE, DispatchView
from fuseline.ir.build import Emitter, element_of
from fuseline.ir.dim import Dim, Symbol


class EntryWriter(ABC):
    """Writes into `block`. `arguments`: the dispatch's values that the tensor arguments stand for; `sizes`: the index
    arguments by name; `copies`: the values copied so far, by the dispatch's."""

    def __init__(self, view: DispatchView) -> None:
        self.view, self.block = view, Block()
        self.arguments: list[SSAValue] = []
        self.sizes: dict[str, SSAValue] = {}
        self.copies: dict[SSAValue, SSAValue] = {}

    @abstractmethod
    def symbol(self, symbol: Symbol) -> SSAValue:
        """The index argument that is a symbol of the dispatch."""

    @abstractmethod
    def tensor_attributes(self, value: SSAValue) -> dict[str, Attribute]:
        """The attributes of the argument that stands for `value`."""

    def size_attributes(self, name: str) -> dict[str, Attribute]:
        """The attributes of the index argument `name`: those of the dispatch's, under that name."""
        argument = self.view.sizes[self.view.size_names.index(name)]
        bounds = argument_attribute(self.view.entry, argument.index, BOUNDS_ATTRIBUTE)
        found: dict[str, Attribute] = {"fuseline.name": StringAttr(name)}
        return found if bounds is None else {**found, BOUNDS_ATTRIBUTE: bounds}

    def function(self, name: str, returned: Sequence[SSAValue]) -> FuncOp:
        """The finished function."""
        end = ReturnOp(*returned)
        end.location = self.view.entry.location
        self.block.add_op(end)
        types = [argument.type for argument in self.block.args], [value.type for value in returned]
        attributes = [*map(self.tensor_attributes, self.arguments), *map(self.size_attributes, self.sizes)]
        entry = FuncOp(name, types, Region(self.block), arg_attrs=ArrayAttr(map(DictionaryAttr, attributes)))
        entry.location = self.view.entry.location
        return entry

    def copy_of(self, value: SSAValue) -> SSAValue:
        """The copy of a value, and of everything behind it: operands first."""
        pending = [value]
        while pending:
            current = pending[-1]
            missing = [] if current in self.copies else self._missing(current)
            if missing:
                pending += reversed(missing)
                continue
            pending.pop()
            if current not in self.copies:
                self._copy(current)
        return self.copies[value]

    def _missing(self, value: SSAValue) -> list[SSAValue]:
        if isinstance(value, BlockArgument) or is_size(self.view, value):
            return []
        assert isinstance(value, OpResult)
        return [source for source in operands_of(value.op) if source not in self.copies]

    def _copy(self, value: SSAValue) -> None:
        if is_size(self.view, value):
            self.copies[value] = self.size(self.view.shapes.index(value))
        elif isinstance(value, BlockArgument):
            self.copies[value] = self.argument(value, value.type)
        else:
            assert isinstance(value, OpResult)
            self.add(value.op, value.op.clone(self.copies, clone_name_hints=False))

    def add(self, old: Operation, new: Operation) -> None:
        """Append `new`, which does what `old` does."""
        new.location = old.location
        self.block.add_op(new)

    def argument(self, value: SSAValue, type_: Attribute) -> SSAValue:
        """A new tensor argument that stands for `value`."""
        self.arguments.append(value)
        return self.block.insert_arg(type_, len(self.arguments) - 1)

    def emitter(self) -> Emitter:
        """Emits at the end of the block."""
        emitter = Emitter.at_end(self.block)
        emitter.location = self.view.entry.location
        return emitter

    def size(self, dim: Dim) -> SSAValue:
        """A size of the dispatch as an index value."""
        return self.emitter().size(dim, self.symbol)

    def mixed(self, dim: Dim) -> SSAValue | int:
        """A number as it is, any other size as an index value."""
        return dim if isinstance(dim, int) else self.size(dim)

    def boxed(
        self, value: SSAValue, whole: Sequence[Dim], sizes: Sequence[Dim], offsets: Sequence[Dim] = ()
    ) -> SSAValue:
        """`value`, of `sizes`, as the box at `offsets` (none: the start) of an empty tensor of sizes `whole`."""
        emit = self.emitter()
        empty = emit.empty(element_of(value), whole, lambda axis: self.size(whole[axis]))
        static, dynamic = _split([self.mixed(size) for size in sizes])
        at, moving = _split([self.mixed(offset) for offset in offsets or (0,) * len(sizes)])
        ones = [1] * len(static)
        return emit.add(tensor.InsertSliceOp.get(value, empty, static, at, ones, offsets=moving, sizes=dynamic)).result


def _split(mixed: Sequence[SSAValue | int]) -> tuple[list[int], list[SSAValue]]:
    """Numbers and index values in MLIR's mixed form."""
    static = [size if isinstance(size, int) else DYNAMIC_INDEX for size in mixed]
    return static, [size for size in mixed if not isinstance(size, int)]
