"""Building blocks for frontends and passes: structured ops, sizes and constants as IR.

An `Emitter` inserts ops at one place and gives each the provenance it was made with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, TypeVar, cast

import numpy as np
from xdsl.dialects import arith, linalg, tensor
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseIntOrFPElementsAttr,
    DenseResourceAttr,
    StringAttr,
    TensorType,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.rewriter import InsertPoint

from fuseline.ir.dim import Atom, Dim, Quotient, Symbol
from fuseline.ir.element_types import element_type, scalar_attribute
from fuseline.ir.fast import attributes
from fuseline.ir.fast.build import block_with, region_with
from fuseline.ir.fast.create import ScalarOps, create_constant, create_empty, create_fill, create_generic, create_yield
from fuseline.ir.fast.direct import append, insert_before, result_of
from fuseline.ir.provenance import location_of
from fuseline.ir.splats import single_value, splat_attribute

PARALLEL, REDUCTION = "parallel", "reduction"

LARGE_SPLAT = 1 << 16
"""Elements from which on a constant is looked at: one number everywhere is kept as that number."""

_SCALAR_OPS = ScalarOps()

OpT = TypeVar("OpT", bound=Operation)


def tensor_type(element: Attribute, dims: Iterable[Dim]) -> TensorType[Any]:
    """`tensor<dims x element>` with `?` for every size that is not a number."""
    return attributes.tensor_type(element, tuple([dim if isinstance(dim, int) else DYNAMIC_INDEX for dim in dims]))


def shape_of(value: SSAValue) -> tuple[int, ...]:
    """The sizes in a tensor value's type; `DYNAMIC_INDEX` for unknown ones. Raises TypeError for a value that is no
    tensor."""
    if not isinstance(value.type, TensorType):
        raise TypeError(f"not a tensor: {value.type}")
    return attributes.shape(value.type)


def element_of(value: SSAValue) -> Attribute:
    """The element type of a tensor value, or the type of a scalar."""
    return value.type.get_element_type() if isinstance(value.type, TensorType) else value.type


@lru_cache(maxsize=64)
def identity_map(rank: int) -> AffineMap:
    """`(d0, ..) -> (d0, ..)`."""
    return AffineMap.identity(rank)


def dims_map(rank: int, dims: Sequence[int | None]) -> AffineMap:
    """The map from `rank` loops to the loops in `dims`; None is the constant 0 (a size-1 dimension that is
    broadcast)."""
    return _dims_map(rank, tuple(dims))


@lru_cache(maxsize=1024)
def _dims_map(rank: int, dims: tuple[int | None, ...]) -> AffineMap:
    return AffineMap(
        rank, 0, tuple([AffineExpr.constant(0) if dim is None else AffineExpr.dimension(dim) for dim in dims])
    )


class Emitter:
    """Inserts ops at one point, each with the provenance `nodes`."""

    def __init__(self, point: InsertPoint, nodes: Iterable[str] = (), *, location: Attribute | None = None) -> None:
        self._block, self._place = point.block, point.insert_before
        self.location: Any = location if location is not None else location_of(nodes)

    @classmethod
    def _at(cls, block: Block | None, position: Operation | None, location: Attribute) -> Emitter:
        """An emitter in `block` before `position` (None: at its end); without an `InsertPoint`, which checks that the
        place is in the block."""
        assert block is not None
        emitter = cls.__new__(cls)
        emitter._block, emitter._place, emitter.location = block, position, location
        return emitter

    @classmethod
    def before(cls, op: Operation) -> Emitter:
        """An emitter right before `op`, with its provenance."""
        return cls._at(op.parent, op, op.location)

    @classmethod
    def after(cls, op: Operation) -> Emitter:
        """An emitter right after `op`, with its provenance."""
        return cls._at(op.parent, op.next_op, op.location)

    @property
    def point(self) -> InsertPoint:
        """Where ops are inserted."""
        return InsertPoint(self._block, self._place)

    @classmethod
    def at_end(cls, block: Block, nodes: Iterable[str] = ()) -> Emitter:
        """An emitter at the end of `block`."""
        return cls._at(block, None, location_of(nodes))

    def add(self, op: OpT) -> OpT:
        """Insert `op` here."""
        op.location = self.location
        if self._place is None:
            append(op, self._block)
        else:
            insert_before(op, self._place)
        return op

    def index(self, value: int) -> SSAValue:
        """An index constant."""
        return result_of(self.add(create_constant(attributes.index(value), attributes.INDEX)))

    def scalar(self, value: float | int | bool, type_: Attribute) -> SSAValue:
        """A scalar constant of `type_`."""
        return result_of(self.add(create_constant(scalar_attribute(value, type_), type_)))

    def constant(self, array: np.ndarray[Any, Any], resources: Any, stem: str = "const") -> SSAValue:
        """A tensor constant: splat and tiny arrays inline, others as `dense_resource`. `resources` is the context
        (`add_resource`)."""
        type_ = attributes.tensor_type(element_type(array.dtype), array.shape)
        if array.size == 1 and array.dtype.kind in "iufb" and array.dtype.itemsize <= 8:
            attribute = DenseIntOrFPElementsAttr.from_list(cast(Any, type_), [array.reshape(-1)[0].item()])
            return result_of(self.add(create_constant(attribute, type_)))
        single = single_value(array) if array.size >= LARGE_SPLAT and array.dtype.kind in "iufb" else None
        if single is not None:
            return result_of(self.add(create_constant(splat_attribute(type_, single), type_)))
        return result_of(
            self.add(create_constant(DenseResourceAttr.from_params(resources.add_resource(stem, array), type_), type_))
        )

    def dim(self, value: SSAValue, axis: int) -> SSAValue:
        """The size of `value` along `axis` as an index value."""
        size = shape_of(value)[axis]
        if size != DYNAMIC_INDEX:
            return self.index(size)
        return self.add(tensor.DimOp(value, self.index(axis))).result

    def size(self, dim: Dim, symbols: Callable[[Symbol], SSAValue]) -> SSAValue:
        """`dim` as an index value; `symbols` supplies the index value of a symbol."""
        return self._size(dim, symbols, {})

    def _size(self, dim: Dim, symbols: Callable[[Symbol], SSAValue], made: dict[Atom, SSAValue]) -> SSAValue:
        """`size`; what occurs in `dim` several times is made once."""
        if isinstance(dim, int):
            return self.index(dim)
        total: SSAValue | None = None
        for monomial, coefficient in dim.terms:
            factors = [self._atom(atom, symbols, made) for atom in monomial]
            if coefficient != 1 or not factors:
                factors.append(self.index(coefficient))
            term = factors[0]
            for factor in factors[1:]:
                term = self.add(arith.MuliOp(term, factor)).result
            total = term if total is None else self.add(arith.AddiOp(total, term)).result
        return total if total is not None else self.index(0)

    def _atom(self, atom: Atom, symbols: Callable[[Symbol], SSAValue], made: dict[Atom, SSAValue]) -> SSAValue:
        if isinstance(atom, Symbol):
            return symbols(atom)
        found = made.get(atom)
        if found is None:
            kind = (
                arith.FloorDivSIOp
                if isinstance(atom, Quotient)
                else arith.MaxSIOp
                if atom.kind == "max"
                else arith.MinSIOp
            )
            first, second = (atom.numerator, atom.denominator) if isinstance(atom, Quotient) else (atom.lhs, atom.rhs)
            found = made[atom] = self.add(
                kind(self._size(first, symbols, made), self._size(second, symbols, made))
            ).result
        return found

    def empty(
        self, element: Attribute, dims: Sequence[Dim], sizes: Callable[[int], SSAValue] | None = None
    ) -> SSAValue:
        """`tensor.empty`; `sizes(axis)` supplies the index value of each size that is not a number."""
        dynamic = (
            [sizes(axis) for axis, dim in enumerate(dims) if not isinstance(dim, int)] if sizes is not None else []
        )
        return self.add(create_empty(tensor_type(element, dims), dynamic)).tensor

    def empty_like(self, value: SSAValue, element: Attribute | None = None) -> SSAValue:
        """An empty tensor of the same sizes as `value`."""
        return self.empty_from(value, range(len(shape_of(value))), element)

    def empty_from(self, value: SSAValue, axes: Iterable[int], element: Attribute | None = None) -> SSAValue:
        """An empty tensor whose sizes are those of `value` along `axes`."""
        axes = list(axes)
        shape = [shape_of(value)[axis] for axis in axes]
        dynamic = [self.dim(value, axis) for axis, size in zip(axes, shape, strict=True) if size == DYNAMIC_INDEX]
        return self.add(
            create_empty(attributes.tensor_type(element or element_of(value), tuple(shape)), dynamic)
        ).tensor

    def fill(self, value: float | int | bool, into: SSAValue) -> SSAValue:
        """`into` (an empty tensor) filled with one value."""
        scalar = self.scalar(value, element_of(into))
        return result_of(self.add(create_fill(scalar, into)))

    def generic(
        self,
        inputs: Sequence[SSAValue],
        outputs: Sequence[SSAValue],
        maps: Sequence[AffineMap],
        iterators: Sequence[str],
        body: Callable[[Body], Sequence[SSAValue]],
    ) -> linalg.ops.GenericOp:
        """`linalg.generic` over `inputs` into `outputs`; `body(b)` sees the elements as `b.args` and answers what to
        yield."""
        block = block_with([element_of(value) for value in (*inputs, *outputs)])
        builder = Body(block, self.location)
        builder.add(create_yield(body(builder)))
        return self.add(create_generic(inputs, outputs, region_with(block), maps, iterators))

    def reshaped_again(self, op: Operation, value: SSAValue) -> SSAValue:
        """What a reshape, cast or slice `op` makes of `value`, whose elements may have another type than its
        own."""
        type_ = attributes.tensor_type(element_of(value), shape_of(op.results[0]))
        operands = [value, *op.operands[1:]]
        return result_of(
            self.add(type(op).create(operands=operands, result_types=[type_], properties=dict(op.properties)))
        )

    def elementwise(
        self,
        inputs: Sequence[SSAValue],
        output: SSAValue,
        body: Callable[[Body], SSAValue],
        maps: Sequence[AffineMap] | None = None,
    ) -> SSAValue:
        """An all-parallel generic with one result over the space of `output` (an empty tensor); default maps are
        identities."""
        rank = len(shape_of(output))
        maps = maps if maps is not None else [identity_map(rank)] * len(inputs)
        op = self.generic(inputs, [output], [*maps, identity_map(rank)], [PARALLEL] * rank, lambda b: [body(b)])
        return result_of(op)


class Body:
    """The block of a structured op while it is written: `args` are the elements, `add` appends a scalar op."""

    def __init__(self, block: Block, location: Any) -> None:
        self.block, self.location = block, location
        self.args: tuple[SSAValue, ...] = tuple(block.args)

    def add(self, op: OpT) -> OpT:
        """Append `op`."""
        op.location = self.location
        append(op, self.block)
        return op

    def op(self, kind: Callable[..., Operation], *operands: Any, **options: Any) -> SSAValue:
        """Append `kind(*operands)` and answer its result."""
        op = _SCALAR_OPS.make(kind, operands, options, self.location)
        append(op, self.block)
        return result_of(op)

    def constant(self, value: float | int | bool, type_: Attribute) -> SSAValue:
        """A scalar constant inside the body."""
        return result_of(self.add(create_constant(scalar_attribute(value, type_), type_)))


def text(value: str) -> StringAttr:
    """A string attribute."""
    return StringAttr(value)
