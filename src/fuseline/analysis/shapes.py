"""Sizes of tensor values as `Dim`s, recomputed from the IR at any time.

Every unknown size (`?`) in the IR has an index value behind it: an operand of `tensor.empty`, an `output_shape`, a
`tensor.dim`. This analysis follows those down to the symbols that a function's arguments carry (`fuseline.dims`), so
that equal sizes are equal `Dim`s.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from xdsl.dialects import arith, linalg, tensor
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    StringAttr,
    TensorType,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue

from fuseline.analysis.moves import groups_of, kept_axes
from fuseline.ir import dim as d
from fuseline.ir.dim import Dim
from fuseline.ir.dim_json import from_name, to_name
from fuseline.ir.fast import attributes
from fuseline.ir.fast.direct import operand_of
from fuseline.ir.flow import DispatchOp, DispatchRegionOp

Dims = tuple[Dim, ...]

DIMS_ATTRIBUTE = "fuseline.dims"
"""On a call: for each result the names of its sizes; for an index the name it has as a size."""

_BINARY: dict[type[Operation], Callable[[Dim, Dim], Dim]] = {
    arith.AddiOp: d.add,
    arith.SubiOp: d.sub,
    arith.MuliOp: d.mul,
    arith.FloorDivSIOp: d.floor_div,
    arith.DivSIOp: d.floor_div,
    arith.DivUIOp: d.floor_div,
    arith.MaxSIOp: d.maximum,
    arith.MinSIOp: d.minimum,
    arith.MaxUIOp: d.maximum,
    arith.MinUIOp: d.minimum,
}


def argument_attribute(function: FuncOp, index: int, name: str) -> StringAttr | ArrayAttr[StringAttr] | None:
    """The attribute `name` of the function's argument `index`, None where it has none."""
    attributes = function.arg_attrs
    if attributes is None or index >= len(attributes.data):
        return None
    entry = attributes.data[index]
    found = entry.data.get(name)
    return found if isinstance(found, StringAttr | ArrayAttr) else None


class ShapeAnalysis:
    """Sizes of the values of one module or function; `symbols` gives bounds to symbol names (default: at least 1).

    Answers are cached by value: make a new one after a rewrite.
    """

    def __init__(self, symbols: Mapping[str, Dim] | None = None) -> None:
        self.symbols = dict(symbols or {})
        # By identity, with the value to keep it alive: the hash of a value is that in Python.
        self._dims: dict[int, tuple[SSAValue, Dims]] = {}
        self._index: dict[int, tuple[SSAValue, Dim]] = {}
        self.origins: dict[str, tuple[SSAValue, int | None]] = {}
        """Where a symbol can be read off: a tensor value and an axis, or an index value and None."""
        self.unnamed: set[str] = set()
        """Symbols made up here, for sizes of which nothing is known: another analysis may call them otherwise."""
        self.remembered: dict[Any, Any] = {}
        """What other analyses found out by these sizes, each by keys of its own."""

    def symbol(self, name: str) -> Dim:
        """The size called `name` with its bounds, or the number that the text is."""
        if name.isdecimal():
            return int(name)
        if name.startswith("["):
            return from_name(name, self.symbols)
        return self.symbols.setdefault(name, d.symbol(name))

    def fresh(self, stem: str, value: SSAValue, axis: int | None = None) -> Dim:
        """A size of which nothing is known but where it stands."""
        name = f"{stem}{len(self.unnamed) + 1}"
        self.unnamed.add(name)
        self.origins[name] = (value, axis)
        return self.symbol(name)

    def _seen(self, value: SSAValue, sizes: Dims) -> Dims:
        for axis, size in enumerate(sizes):
            name = to_name(size)
            if not isinstance(size, int) and not name.startswith("["):
                self.origins.setdefault(name, (value, axis))
        return sizes

    def dims(self, value: SSAValue) -> Dims:
        """The sizes of a tensor value; `()` for a scalar."""
        found = self._dims.get(id(value))
        if found is None:
            found = self._dims[id(value)] = value, self._compute(value)
        return found[1]

    def index(self, value: SSAValue) -> Dim:
        """What an index value is."""
        found = self._index.get(id(value))
        if found is None:
            found = self._index[id(value)] = value, self._compute_index(value)
        return found[1]

    def _compute(self, value: SSAValue) -> Dims:
        if not isinstance(value.type, TensorType):
            return ()
        shape = attributes.shape(value.type)
        if DYNAMIC_INDEX not in shape:
            return shape
        if type(value) is BlockArgument:
            return self._argument(value, shape)
        assert type(value) is OpResult
        dynamic = self._result(value)
        return tuple(known if known != DYNAMIC_INDEX else size for known, size in zip(shape, dynamic, strict=True))

    def _argument(self, value: BlockArgument, shape: Sequence[int]) -> Dims:
        parent = value.owner.parent_op()
        names = argument_attribute(parent, value.index, "fuseline.dims") if type(parent) is FuncOp else None
        if isinstance(names, ArrayAttr):
            return self._seen(
                value,
                tuple(
                    size if size != DYNAMIC_INDEX else self.symbol(n.data)
                    for size, n in zip(shape, names.data, strict=True)
                ),
            )
        stem = value.name_hint or f"arg{value.index}"
        return self._seen(
            value,
            tuple(size if size != DYNAMIC_INDEX else self.symbol(f"{stem}_{axis}") for axis, size in enumerate(shape)),
        )

    def _result(self, value: OpResult) -> Dims:
        op = value.op
        rule = _RULES.get(type(op))
        if rule is not None:
            return rule(self, op, value)
        if isinstance(op, linalg.abstract_ops.LinalgStructuredOperation):
            return self.dims(op.outputs[value.index])
        annotated = op.attributes.get(DIMS_ATTRIBUTE)
        if isinstance(annotated, ArrayAttr):
            return self._seen(
                value,
                tuple(self.symbol(name.data) for name in annotated.data[value.index] if isinstance(name, StringAttr)),
            )
        shape = value.type.get_shape() if isinstance(value.type, TensorType) else ()
        return tuple(self.fresh("unknown", value, axis) for axis in range(len(shape)))

    def mixed(self, static: Sequence[int], dynamic: Sequence[SSAValue]) -> Dims:
        """Sizes given partly as numbers and partly as index values, in MLIR's mixed form."""
        rest = iter(dynamic)
        return tuple(self.index(next(rest)) if size == DYNAMIC_INDEX else size for size in static)

    def _compute_index(self, value: SSAValue) -> Dim:
        if type(value) is BlockArgument:
            return self._index_argument(value)
        assert type(value) is OpResult
        op = value.op
        if type(op) is arith.ConstantOp and isinstance(op.value, IntegerAttr):
            return op.value.value.data
        if type(op) is tensor.DimOp:
            axis = self.index(op.index)
            return self.dims(op.source)[axis] if isinstance(axis, int) else self.fresh("size", value)
        if type(op) is arith.IndexCastOp:
            return self.index(op.input)
        binary = _BINARY.get(type(op))
        if binary is not None:
            return binary(self.index(operand_of(op, 0)), self.index(operand_of(op, 1)))
        if isinstance(op, arith.RemSIOp | arith.RemUIOp):
            numerator, denominator = self.index(operand_of(op, 0)), self.index(operand_of(op, 1))
            return d.sub(numerator, d.mul(denominator, d.floor_div(numerator, denominator)))
        if isinstance(op, arith.CeilDivSIOp | arith.CeilDivUIOp):
            numerator, denominator = self.index(operand_of(op, 0)), self.index(operand_of(op, 1))
            return d.floor_div(d.sub(d.add(numerator, denominator), 1), denominator)
        annotated = op.attributes.get(DIMS_ATTRIBUTE)
        if isinstance(annotated, ArrayAttr):
            (name,) = cast(ArrayAttr[StringAttr], annotated.data[value.index])
            self.origins.setdefault(name.data, (value, None))
            return self.symbol(name.data)
        return self.fresh("size", value)

    def _index_argument(self, value: BlockArgument) -> Dim:
        parent = value.owner.parent_op()
        name = argument_attribute(parent, value.index, "fuseline.name") if type(parent) is FuncOp else None
        text = (
            name.data
            if isinstance(name, StringAttr) and isinstance(value.type, IndexType)
            else (value.name_hint or f"arg{value.index}")
        )
        self.origins.setdefault(text, (value, None))
        return self.symbol(text)


def static_numbers(op: Operation, name: str) -> tuple[int, ...]:
    """The numbers in the array property `name` of `op`; `DYNAMIC_INDEX` where an operand stands."""
    return attributes.values(cast(DenseArrayBase[Any], op.properties[name]))


def _empty(shapes: ShapeAnalysis, op: Operation, value: OpResult) -> Dims:
    assert type(op) is tensor.EmptyOp and isinstance(value.type, TensorType)
    return shapes.mixed(value.type.get_shape(), op.dynamic_sizes)


def _expand(shapes: ShapeAnalysis, op: Operation, value: OpResult) -> Dims:
    del value
    assert type(op) is tensor.ExpandShapeOp
    return shapes.mixed(static_numbers(op, "static_output_shape"), op.dynamic_output_shape)


def _collapse(shapes: ShapeAnalysis, op: Operation, value: OpResult) -> Dims:
    del value
    assert type(op) is tensor.CollapseShapeOp
    source = shapes.dims(op.src)
    return tuple(d.product(source[axis] for axis in group) for group in groups_of(op))


def _pad(shapes: ShapeAnalysis, op: Operation, value: OpResult) -> Dims:
    del value
    assert type(op) is tensor.PadOp
    low = shapes.mixed(static_numbers(op, "static_low"), op.low)
    high = shapes.mixed(static_numbers(op, "static_high"), op.high)
    return tuple(
        d.add(size, d.add(before, after)) for size, before, after in zip(shapes.dims(op.source), low, high, strict=True)
    )


def _extract_slice(shapes: ShapeAnalysis, op: Operation, value: OpResult) -> Dims:
    assert type(op) is tensor.ExtractSliceOp and isinstance(value.type, TensorType)
    sizes = shapes.mixed(static_numbers(op, "static_sizes"), op.sizes)
    return tuple(sizes[axis] for axis in kept_axes(sizes, value.type.get_shape()))


def _concat(shapes: ShapeAnalysis, op: Operation, value: OpResult) -> Dims:
    del value
    assert type(op) is tensor.ConcatOp
    axis = op.dim.value.data
    parts = [shapes.dims(part) for part in op.inputs]
    total: Dim = 0
    for part in parts:
        total = d.add(total, part[axis])
    return (*parts[0][:axis], total, *parts[0][axis + 1 :])


def _same_as_first(shapes: ShapeAnalysis, op: Operation, value: OpResult) -> Dims:
    del value
    return shapes.dims(operand_of(op, 0))


def _insert_slice(shapes: ShapeAnalysis, op: Operation, value: OpResult) -> Dims:
    del value
    assert type(op) is tensor.InsertSliceOp
    return shapes.dims(op.dest)


def _of_region(shapes: ShapeAnalysis, op: Operation, value: OpResult) -> Dims:
    assert isinstance(op, DispatchRegionOp | DispatchOp)
    rest = iter(op.result_dims)
    for result in op.results:
        assert isinstance(result.type, TensorType)
        sizes = tuple(shapes.index(next(rest)) if size == DYNAMIC_INDEX else size for size in result.type.get_shape())
        if result is value:
            return sizes
    raise AssertionError("a result of another op")


_RULES: dict[type[Operation], Callable[[ShapeAnalysis, Operation, OpResult], Dims]] = {
    tensor.EmptyOp: _empty,
    tensor.ExpandShapeOp: _expand,
    tensor.CollapseShapeOp: _collapse,
    tensor.PadOp: _pad,
    tensor.ExtractSliceOp: _extract_slice,
    tensor.InsertSliceOp: _insert_slice,
    tensor.ConcatOp: _concat,
    tensor.CastOp: _same_as_first,
    DispatchRegionOp: _of_region,
    DispatchOp: _of_region,
}
