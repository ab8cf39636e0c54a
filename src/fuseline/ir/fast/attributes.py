"""Attributes made once: asked for again, an equal attribute is the same object.

xDSL checks every attribute that it constructs against its definition (10 us); a compile asks for the same few hundred a
hundred thousand times. The tables are bounded, so that a process that compiles for ever keeps a bounded number of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, cast

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AffineMapAttr,
    ArrayAttr,
    DenseArrayBase,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    TensorType,
    UnitAttr,
    i32,
    i64,
)
from xdsl.dialects.linalg.attrs import IteratorType, IteratorTypeAttr
from xdsl.ir import Attribute
from xdsl.ir.affine import AffineMap

from fuseline.ir.fast.identity import by_first_identity, by_identities, by_identity

_MANY = 1 << 14
_SOME = 1 << 10

INDEX = IndexType()
"""`index`."""

UNIT = UnitAttr()
"""`unit`."""


@by_first_identity
def tensor_type(element: Attribute, shape: tuple[int, ...]) -> TensorType[Any]:
    """`tensor<shape x element>`; `DYNAMIC_INDEX` for sizes that are no numbers."""
    return _tensor_type(element, shape)


@lru_cache(maxsize=_MANY)
def _tensor_type(element: Attribute, shape: tuple[int, ...]) -> TensorType[Any]:
    # Equal element types that are several objects share their tensor types.
    return TensorType(element, shape)


@by_identity
def shape(type_: TensorType[Any]) -> tuple[int, ...]:
    """The sizes in `type_`; `DYNAMIC_INDEX` for those that are no numbers."""
    return type_.get_shape()


def is_static(type_: Attribute) -> bool:
    """Whether a type is that of a tensor whose sizes are all numbers."""
    return isinstance(type_, TensorType) and DYNAMIC_INDEX not in shape(cast(TensorType[Any], type_))


def integer(value: int, type_: IntegerType | IndexType) -> IntegerAttr[Any]:
    """`value : type_`. Raises VerifyException for a value that the type cannot hold."""
    return _integer(type_, value)


@by_first_identity
def _integer(type_: IntegerType | IndexType, value: int) -> IntegerAttr[Any]:
    return _one_integer(type_, value)


@lru_cache(maxsize=_MANY)
def _one_integer(type_: IntegerType | IndexType, value: int) -> IntegerAttr[Any]:
    return IntegerAttr(value, type_)


def index(value: int) -> IntegerAttr[Any]:
    """`value : index`."""
    return _integer(INDEX, value)


def integer64(value: int) -> IntegerAttr[Any]:
    """`value : i64`, as ops hold their axes."""
    return _integer(i64, value)


def floating(value: float, type_: Attribute) -> FloatAttr[Any]:
    """`value : type_` (a float type)."""
    return _floating(type_, value.hex())


@by_first_identity
def _floating(type_: Attribute, digits: str) -> FloatAttr[Any]:
    return _one_float(type_, digits)


@lru_cache(maxsize=_MANY)
def _one_float(type_: Attribute, digits: str) -> FloatAttr[Any]:
    # By digits: 0.0 and -0.0 are equal numbers, but not equal attributes.
    return FloatAttr(float.fromhex(digits), type_)  # pyright: ignore[reportArgumentType, reportCallIssue]


@lru_cache(maxsize=_MANY)
def dense(values: tuple[int, ...]) -> DenseArrayBase[IntegerType]:
    """`array<i64: values>`."""
    return DenseArrayBase.from_list(i64, values)


@by_identity
def values(attribute: DenseArrayBase[Any]) -> tuple[int, ...]:
    """The numbers in `array<i64: ..>`."""
    return tuple([int(value) for value in attribute.get_values()])


@lru_cache(maxsize=_SOME)
def text(attribute: Attribute) -> str:
    """`attribute` as MLIR prints it; for attributes that many ops have (types, maps, segment sizes), not for large
    constants."""
    return str(attribute)


@lru_cache(maxsize=_SOME)
def segments(sizes: tuple[int, ...]) -> DenseArrayBase[IntegerType]:
    """`array<i32: sizes>`: how many operands belong to each group."""
    return DenseArrayBase.from_list(i32, sizes)


@lru_cache(maxsize=_SOME)
def iterators(kinds: tuple[str, ...]) -> ArrayAttr[IteratorTypeAttr]:
    """The iterator types of a structured op from `"parallel"` and `"reduction"`."""
    return ArrayAttr([_iterator(kind) for kind in kinds])


@lru_cache(maxsize=8)
def _iterator(kind: str) -> IteratorTypeAttr:
    return IteratorTypeAttr(IteratorType(kind))


def reassociation(groups: Sequence[Sequence[int]]) -> ArrayAttr[ArrayAttr[IntegerAttr[Any]]]:
    """For every dimension of the collapsed side of a reshape, its dimensions on the expanded side."""
    return _reassociation(tuple([tuple(group) for group in groups]))


@lru_cache(maxsize=_MANY)
def _reassociation(groups: tuple[tuple[int, ...], ...]) -> ArrayAttr[ArrayAttr[IntegerAttr[Any]]]:
    return ArrayAttr([ArrayAttr([integer64(axis) for axis in group]) for group in groups])


@by_identities
def affine_maps(maps: tuple[AffineMap, ...]) -> ArrayAttr[AffineMapAttr]:
    """The indexing maps of a structured op."""
    return _affine_maps(maps)


@lru_cache(maxsize=_MANY)
def _affine_maps(maps: tuple[AffineMap, ...]) -> ArrayAttr[AffineMapAttr]:
    return ArrayAttr([AffineMapAttr(map_) for map_ in maps])
