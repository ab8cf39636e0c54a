"""Digests of the values of a dispatch by how they are made: the same for values that differ in constants, extents or
the order of commutative operands, and the same in every process.

They order things, no more: values that happen to have one digest stay in the order they were in.
"""

from __future__ import annotations

import zlib

from xdsl.dialects import arith
from xdsl.dialects.builtin import TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue

from fuseline.analysis.band_maps import maps_but_for_bands
from fuseline.analysis.structured import StructuredOp, is_constant, is_generic, yielded
from fuseline.dispatch.view import DispatchView
from fuseline.ir.fast import attributes
from fuseline.ir.fast.direct import body_of, operands_of, ops_of
from fuseline.ir.scalar_ops import COMMUTATIVE


class ValueDigests:
    """The digests of all values in an entry function."""

    def __init__(self, entry: FuncOp) -> None:
        self._found: dict[SSAValue, int] = {}
        view = DispatchView(entry)
        for argument in body_of(entry).args:
            said = view.is_constant(argument), view.is_scalar(argument)
            self._found[argument] = _digest("argument", _form(argument.type), *said)
        for op in ops_of(body_of(entry)):
            if is_generic(op):
                self._generic(StructuredOp(op))
            else:
                self._op(op)

    def of(self, value: SSAValue) -> tuple[bool, int]:
        """A key to sort by: constants come last."""
        return is_constant(value), self._found[value]

    def _generic(self, view: StructuredOp) -> None:
        texts = [str(map_) for map_ in maps_but_for_bands(view.op)]
        for i, (value, argument) in enumerate(zip(view.operands, view.body.args, strict=True)):
            made = self._found[value] if i < view.input_count else i - view.input_count
            self._found[argument] = _digest("element", made, texts[i])
        for op in ops_of(view.body):
            self._op(op)
        for value, result, text in zip(yielded(view.op), view.op.results, texts[view.input_count :], strict=True):
            self._found[result] = _digest("generic", view.iterators, self._found[value], text)

    def _op(self, op: Operation) -> None:
        if type(op) is arith.ConstantOp:
            self._found[op.result] = _digest("constant", _form(op.result.type))
            return
        read = [self._found[value] for value in operands_of(op)]
        said = [(name, attributes.text(value)) for name, value in sorted(op.properties.items()) if _is_small(op)]
        for i, result in enumerate(op.results):
            made = sorted(read) if type(op) in COMMUTATIVE else read
            self._found[result] = _digest(op.name, i, made, said, _form(result.type))


def _is_small(op: Operation) -> bool:
    """Whether the properties of `op` are no extents: those of scalars."""
    return not any(isinstance(result.type, TensorType) for result in op.results)


def _form(type_: Attribute) -> str:
    """A type without its extents."""
    if isinstance(type_, TensorType):
        return f"{attributes.text(type_.element_type)} of rank {len(attributes.shape(type_))}"
    return attributes.text(type_)


def _digest(*values: object) -> int:
    return zlib.crc32(repr(values).encode())
