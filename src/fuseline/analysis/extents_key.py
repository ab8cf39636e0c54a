"""Identity of code up to extents: equal for entry functions that differ in nothing but how large their tensors are,
where parts of those lie, and how far their loops run.

    tensor<56x64xf32>, [0, 8] [56, 8]         =>      tensor<..x..xf32>, [.., ..] [.., ..]

Steps of slices, axes, maps and what is inside of a structured op are code; so is which extents are operands (`?`). How
far bands of a tensor are apart, of which a copy takes all (row `28 b + r` as row `r` of band `b`), is an extent.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, cast

from xdsl.dialects import tensor
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DictionaryAttr,
    IndexType,
    IntegerAttr,
    StringAttr,
    TensorType,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation

from fuseline.analysis.band_maps import maps_but_for_bands
from fuseline.analysis.structural_key import IGNORED_PROPERTIES, AttributeNumbers, KeyBuilder
from fuseline.analysis.structured import is_generic
from fuseline.ir.fast import attributes

_EXTENTS: Mapping[type[Operation], frozenset[str]] = {
    tensor.ExtractSliceOp: frozenset({"static_offsets", "static_sizes"}),
    tensor.InsertSliceOp: frozenset({"static_offsets", "static_sizes"}),
    tensor.PadOp: frozenset({"static_low", "static_high"}),
    tensor.ExpandShapeOp: frozenset({"static_output_shape"}),
    FuncOp: frozenset({"function_type", "arg_attrs"}),
}
"""The properties that hold extents."""


def extents_key(entry: FuncOp, numbers: AttributeNumbers) -> Hashable:
    """The key of an entry function; comparable among keys made with the same `numbers`."""
    return _ExtentsKeyBuilder(numbers).key(entry)


def key_around(root: Operation, entry: FuncOp, numbers: AttributeNumbers) -> Hashable:
    """The key of an entry function but for how `root` traverses its operands, which its maps and their ranks say."""
    return _Around(numbers, root).key(entry)


class _ExtentsKeyBuilder(KeyBuilder):
    def said(self, op: Operation) -> Hashable:
        extents = _EXTENTS.get(type(op), frozenset[str]())
        bands = {"indexing_maps": attributes.affine_maps(tuple(maps_but_for_bands(op)))} if is_generic(op) else {}
        rest = self.numbers.of({**op.properties, **bands}, IGNORED_PROPERTIES | extents)
        shaped = [(name, self._extents(op.properties[name])) for name in sorted(extents & op.properties.keys())]
        return rest, tuple(shaped), tuple((name, _erased(value)) for name, value in sorted(op.attributes.items()))

    def form(self, attribute: Attribute) -> Hashable:
        if isinstance(attribute, TensorType):
            shape = attributes.shape(cast(Any, attribute))
            return self.numbers.number(attribute.get_element_type()), _operands(shape)
        if isinstance(attribute, IntegerAttr) and isinstance(attribute.type, IndexType):
            return "index"
        return self.numbers.number(attribute)

    def _extents(self, attribute: Attribute) -> Hashable:
        """Which of the extents in a property are operands; what is said of arguments beside their sizes."""
        if isinstance(attribute, ArrayAttr):
            return _erased(cast(Attribute, attribute))
        values = getattr(attribute, "get_values", None)
        return _operands(tuple(values())) if values is not None else ()


class _Around(_ExtentsKeyBuilder):
    def __init__(self, numbers: AttributeNumbers, root: Operation) -> None:
        super().__init__(numbers)
        self.root = root

    def said(self, op: Operation) -> Hashable:
        return () if op is self.root or isinstance(op, FuncOp) else super().said(op)

    def form(self, attribute: Attribute) -> Hashable:
        if isinstance(attribute, TensorType):
            return self.numbers.number(attribute.get_element_type())
        return super().form(attribute)


def _operands(extents: tuple[int, ...]) -> Hashable:
    return tuple([extent == DYNAMIC_INDEX for extent in extents])


def _erased(attribute: Attribute) -> Hashable:
    """An attribute without the numbers that are extents in it, which are text."""
    if isinstance(attribute, DictionaryAttr):
        return tuple((name, _erased(value)) for name, value in sorted(attribute.data.items()))
    if isinstance(attribute, ArrayAttr):
        return tuple(_erased(cast(Attribute, one)) for one in attribute.data)
    is_number = isinstance(attribute, StringAttr) and attribute.data.isdecimal()
    return "" if is_number else attribute
