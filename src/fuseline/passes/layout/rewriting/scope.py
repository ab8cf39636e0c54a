"""One function under rewriting: its sizes as `Dim`s and as index values that are valid everywhere in it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cache

from xdsl.dialects import arith, func, linalg, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, ModuleOp, TensorType
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue
from xdsl.rewriter import InsertPoint

from fuseline.analysis.shapes import Dims, ShapeAnalysis
from fuseline.ir import dim as d
from fuseline.ir.build import Emitter, element_of, shape_of, tensor_type
from fuseline.ir.context import CompilerContext
from fuseline.ir.dim import Dim, Expr, Symbol
from fuseline.ir.fast import attributes
from fuseline.ir.fast.create import create_empty
from fuseline.ir.fast.direct import body_of, erase, is_unused, ops_of, replace_uses, result_of
from fuseline.ir.provenance import nodes_in

_REMOVABLE = (
    *(
        tensor.EmptyOp,
        tensor.DimOp,
        tensor.ExpandShapeOp,
        tensor.CollapseShapeOp,
        tensor.PadOp,
        tensor.ExtractSliceOp,
        tensor.ConcatOp,
    ),
    *(arith.ConstantOp, arith.AddiOp, arith.MuliOp, arith.SubiOp),
)


class Scope:
    """The body of one function while a pass rewrites it.

    Sizes are cached by value, which is sound because passes replace values and never change the type of one in place.
    """

    def __init__(self, function: func.FuncOp, ctx: CompilerContext) -> None:
        self.function = function
        self.block: Block = body_of(function)
        self.ctx = ctx
        self.shapes = ShapeAnalysis(ctx.symbols)
        self._symbols = self._symbol_sources()
        self._values: dict[Dim, SSAValue] = {}
        self._empties: dict[int, tensor.EmptyOp] = {}  # by the identity of the type
        self._shared: dict[tuple[int, Hashable], tuple[SSAValue, OpResult]] = {}
        self._last: Operation | None = None

    def _symbol_sources(self) -> dict[str, tuple[SSAValue, int | None]]:
        found: dict[str, tuple[SSAValue, int | None]] = {}
        for argument in self.block.args:
            if isinstance(argument.type, IndexType):
                self._note(found, self.shapes.index(argument), argument, None)
            for axis, size in enumerate(self.shapes.dims(argument)):
                self._note(found, size, argument, axis)
        return found

    @staticmethod
    def _note(found: dict[str, tuple[SSAValue, int | None]], size: Dim, argument: SSAValue, axis: int | None) -> None:
        if isinstance(size, Expr) and len(size.terms) == 1:
            monomial, coefficient = size.terms[0]
            if coefficient == 1 and len(monomial) == 1 and isinstance(monomial[0], Symbol):
                found.setdefault(monomial[0].name, (argument, axis))

    def dims(self, value: SSAValue) -> Dims:
        """The sizes of a tensor value."""
        return self.shapes.dims(value)

    def knows(self, size: Dim) -> bool:
        """Whether `size` can be computed at the entry of the function."""
        return isinstance(size, int) or all(symbol.name in self._symbols for symbol in d.symbols(size))

    def knows_all(self, sizes: Iterable[Dim]) -> bool:
        """Whether every size can be computed at the entry of the function."""
        return all(self.knows(size) for size in sizes)

    def size_value(self, size: Dim) -> SSAValue:
        """`size` (one that is known) as an index value computed at the entry of the function."""
        found = self._values.get(size)
        if found is None:
            found = self._values[size] = self._entry().size(size, self._symbol_value)
        return found

    def _entry(self) -> Emitter:
        point = InsertPoint.at_start(self.block) if self._last is None else InsertPoint.after(self._last)
        return _EntryEmitter(self, point)

    def _symbol_value(self, symbol: Symbol) -> SSAValue:
        size = d.symbol(symbol.name, symbol.lo, symbol.hi)
        if size not in self._values:
            argument, axis = self._symbols[symbol.name]
            self._values[size] = argument if axis is None else self._entry().dim(argument, axis)
        return self._values[size]

    def inserted(self, op: Operation) -> None:
        """Remember the last op of the entry, so that later ones follow it."""
        self._last = op

    def empty(self, at: Emitter, element: Attribute, dims: Sequence[Dim]) -> SSAValue:
        """`tensor.empty` of known sizes; one per type where they are numbers."""
        if all(isinstance(size, int) for size in dims):
            return self.static_empty(at, tensor_type(element, dims))
        return at.empty(element, dims, lambda axis: self.size_value(dims[axis]))

    def static_empty(self, at: Emitter, type_: TensorType[Attribute]) -> SSAValue:
        """The empty tensor of a static type, made once at the entry of the function."""
        found = self._empties.get(id(type_))
        if found is None or found.parent is None:
            found = self._empties[id(type_)] = self._entry().add(create_empty(type_))
            found.location = at.location
        return result_of(found)

    def shared(self, value: SSAValue, what: Hashable, make: Callable[[], SSAValue]) -> SSAValue:
        """What `make` makes of `value` right after it: once for all that ask for the same until the next sweep."""
        key = id(value), what
        found = self._shared.get(key)
        if found is not None and found[1].op.parent is not None:
            return found[1]
        made = make()
        if type(made) is OpResult:
            self._shared[key] = value, made
        return made

    def empty_permuted(self, at: Emitter, value: SSAValue, permutation: Sequence[int]) -> SSAValue:
        """`tensor.empty` with the sizes of `value` in another order; unknown sizes are read off `value` itself."""
        dims, shape = self.dims(value), shape_of(value)
        if DYNAMIC_INDEX not in shape:
            return self.static_empty(
                at, attributes.tensor_type(element_of(value), tuple([shape[axis] for axis in permutation]))
            )
        dynamic = [
            self.size_value(dims[axis]) if self.knows(dims[axis]) else at.dim(value, axis)
            for axis in permutation
            if shape[axis] == DYNAMIC_INDEX
        ]
        type_ = attributes.tensor_type(element_of(value), tuple([shape[axis] for axis in permutation]))
        return at.add(create_empty(type_, dynamic)).tensor

    def typed(self, value: SSAValue, dims: Sequence[Dim]) -> TensorType[Attribute]:
        """The type of a tensor like `value` with other sizes."""
        return tensor_type(element_of(value), dims)

    def lift_sizes(self) -> None:
        """Make every `tensor.dim` of an intermediate value an expression over the arguments, so that it keeps no value
        alive."""
        for op in ops_of(self.block):
            if type(op) is tensor.DimOp and type(op.source) is OpResult:
                size = self.shapes.index(op.result)
                if self.knows(size):
                    replace_uses(op.result, self.size_value(size))
                    erase(op)

    def sweep(self) -> None:
        """Erase the layout ops, generics and inits that nothing uses any more."""
        sweep(self.block)
        # What the entry holds may have gone: make it afresh when it is needed again.
        self._values.clear()
        self._empties.clear()
        self._shared.clear()
        self._last = None


class _EntryEmitter(Emitter):
    def __init__(self, scope: Scope, point: InsertPoint) -> None:
        super().__init__(point, location=scope.function.location)
        self._scope = scope

    def add(self, op: Operation) -> Operation:  # pyright: ignore[reportIncompatibleMethodOverride]
        super().add(op)
        self._scope.inserted(op)
        return op


def _is_removable(op: Operation) -> bool:
    return bool(op.results) and _is_removable_kind(type(op))


@cache
def _is_removable_kind(kind: type[Operation]) -> bool:
    return issubclass(kind, (linalg.abstract_ops.LinalgStructuredOperation, *_REMOVABLE))


def sweep(block: Block) -> None:
    """Erase the layout ops, generics, inits and constants in `block` that nothing uses."""
    for op in reversed(ops_of(block)):
        if is_unused(op) and _is_removable(op):
            erase(op)


class Ledger:
    """Which source nodes the ops of a module come from, before and after a pass: what vanished was eliminated by the
    pass."""

    def __init__(self, module: ModuleOp) -> None:
        self.module = module
        self.before = self._locations()

    def _locations(self) -> dict[int, Attribute]:
        """The locations of the ops at the top level by identity; ops inside the body of a structured op come from where
        the op comes from."""
        seen: dict[int, Attribute] = {}
        for function in ops_of(body_of(self.module)):
            seen[id(function.location)] = function.location
            for block in (block for region in function.regions for block in region.blocks):
                for op in ops_of(block):
                    if type(op) is not tensor.EmptyOp:  # a shape, shared by many: it computes nothing of the node
                        seen[id(op.location)] = op.location
        return seen

    def close(self, ctx: CompilerContext, pass_name: str) -> None:
        """Record every node that no op names any more."""
        after = self._locations()
        gone = _names(location for identity, location in self.before.items() if identity not in after)
        for node in sorted(gone - _names(after.values())) if gone else ():
            ctx.records.eliminated.setdefault(node, pass_name)


def _names(locations: Iterable[Attribute]) -> set[str]:
    return {node for location in locations for node in nodes_in(location)}
