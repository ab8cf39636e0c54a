"""What code looks like from afar: equal for near-duplicates, code that differs in constants, extents, strides and
dilations only.

Other than `structural_key`, an equal key promises nothing: it says which executables are worth a comparison.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable

from xdsl.dialects import linalg, tensor
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, OpResult, SSAValue

from fuseline.analysis.indexing_maps import with_steps_alike
from fuseline.analysis.structural_key import AttributeNumbers
from fuseline.analysis.structured import is_generic
from fuseline.ir.fast import attributes
from fuseline.ir.fast.direct import body_of, operands_of, ops_of

_STARTS = (ConstantOp, tensor.EmptyOp, linalg.ops.FillOp)
"""Ops that count where they are read: which of them are one op depends on extents."""


def loose_key(
    entry: FuncOp, numbers: AttributeNumbers, erased: Collection[tuple[Operation, int]] = frozenset()
) -> Hashable:
    """The key of an entry function; comparable among keys made with the same `numbers`.

    Args:
        erased: readers, as operations and operand numbers, of whose constants only the type counts.
    """
    return _KeyOfBody(numbers, erased).body(entry)


class _KeyOfBody:
    def __init__(self, numbers: AttributeNumbers, erased: Collection[tuple[Operation, int]]) -> None:
        self.numbers, self.erased = numbers, erased
        self.values: dict[int, int] = {}

    def body(self, op: Operation) -> Hashable:
        """What is inside the first region of `op`."""
        block = body_of(op)
        for argument in block.args:
            self.values[id(argument)] = len(self.values)
        types = tuple([self._form(argument.type) for argument in block.args])
        return types, tuple([self._op(inner) for inner in ops_of(block) if type(inner) not in _STARTS])

    def _op(self, op: Operation) -> Hashable:
        read = tuple([self._operand(value, erased=(op, i) in self.erased) for i, value in enumerate(operands_of(op))])
        for result in op.results:
            self.values[id(result)] = len(self.values)
        made = tuple([self._form(result.type) for result in op.results])
        return op.name, read, made, self._said(op), self.body(op) if op.regions else ()

    def _said(self, op: Operation) -> Hashable:
        """The properties that are no extents."""
        if is_generic(op):
            maps = attributes.affine_maps(tuple([with_steps_alike(map_.data) for map_ in op.indexing_maps]))
            return self.numbers.number(maps), self.numbers.number(op.iterator_types)
        shaped = any(isinstance(value.type, TensorType) for value in (*operands_of(op), *op.results))
        return () if shaped else self.numbers.of(op.properties)

    def _operand(self, value: SSAValue, *, erased: bool) -> Hashable:
        source = value.op if type(value) is OpResult else None
        if type(source) is ConstantOp:
            return "constant", self.numbers.number(value.type if erased else source.value)
        if type(source) in _STARTS:
            assert source is not None
            filled = tuple([self._operand(scalar, erased=False) for scalar in operands_of(source)[:1]])
            return source.name, self._form(value.type), filled
        return self.values.setdefault(id(value), len(self.values))

    def _form(self, type_: Attribute) -> Hashable:
        """A type without its extents."""
        if isinstance(type_, TensorType):
            return len(attributes.shape(type_)), self.numbers.number(type_.element_type)
        return self.numbers.number(type_)
