"""Which memory tensors lie in: views alias what they are views of."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import IndexType, StringAttr, TensorType, bf16, f16, f32, i1, i8
from xdsl.ir import Attribute, Block

from fuseline.buffers import BufferRef
from fuseline.errors import FuselineError
from fuseline.ir.context import new_context
from fuseline.ir.dim import mul, symbol
from fuseline.passes.schedule.main_buffers import MainBuffers, Storage, dtype_name, tensor_type
from tests.graphs.program import Program
from tests.unit.passes.layout.rewriting.programs import constant, scope_of


def _buffers(p: Program) -> MainBuffers:
    return MainBuffers(p.block, scope_of(p).shapes, Storage(new_context()))


def test_what_is_asked_for_first_gets_a_buffer_of_its_own() -> None:
    p = Program((4, 6), ("n", 3))
    a, b = p.unary(p.x[0]), p.unary(p.x[1])
    buffers = _buffers(p.done(a, b))
    assert [buffers.ref(value) for value in (a, b, a)] == [
        BufferRef("transient", 0),
        BufferRef("transient", 1),
        BufferRef("transient", 0),
    ]
    assert buffers.storage.transients == [96, mul(symbol("n"), 12)]


def test_views_lie_where_their_root_does() -> None:
    p = Program((4, 6))
    rows = p.slice(p.x[0], [1, 0], [2, 6])
    flat = p.collapse(rows)
    last = p.slice(flat, [6], [6])
    buffers = _buffers(p.done(p.unary(last)))
    buffers.put(p.x[0], BufferRef("input", 0))
    assert buffers.root(last) is p.x[0] and buffers.has(p.x[0])
    operand = buffers.operand(last)
    assert (operand.buffer, operand.dims, operand.dtype) == (BufferRef("input", 0, 48), (6,), "float32")
    assert buffers.operand(rows).buffer == BufferRef("input", 0, 24)


def test_columns_are_no_view() -> None:
    p = Program((4, 6))
    columns = p.columns(p.x[0], 1, 3)
    buffers = _buffers(p.done(columns))
    assert buffers.root(columns) is columns


def test_constants_and_fills_are_arrays_of_the_program() -> None:
    p = Program((3,))
    weights, filled = constant(p, 2, 3), p.zeros(4, value=2.5)
    buffers = _buffers(p.done(weights, filled))
    assert [buffers.ref(value) for value in (weights, filled)] == [BufferRef("constant", 0), BufferRef("constant", 1)]
    first, second = buffers.storage.constants
    np.testing.assert_array_equal(first, np.arange(6, dtype=np.float32).reshape(2, 3) / 4 - 1)
    np.testing.assert_array_equal(second, np.full(4, 2.5, np.float32))


def test_parts_lie_one_behind_the_other() -> None:
    p = Program((2, 3), (5, 3))
    a, b = p.unary(p.x[0]), p.unary(p.x[1])
    whole = p.concat(a, p.x[0], b, axis=0)
    buffers = _buffers(p.done(whole))
    assert buffers.put_parts(whole, [a, p.x[0], b], [a, None, b]) == [(p.x[0], BufferRef("transient", 0, 24))]
    assert (buffers.ref(a).offset, buffers.ref(b).offset) == (0, 48)


def test_resources_are_constants_once_and_need_their_data() -> None:
    ctx = new_context()
    ctx.resources["w"] = np.ones(3, np.float32)
    storage, p = Storage(ctx), Program((3,))
    made = p.unary(p.x[0])
    op = made.owner
    assert not isinstance(op, Block)
    assert storage.resource("w", op) == storage.resource("w", op) == BufferRef("constant", 0)
    with pytest.raises(FuselineError, match="no data for dense_resource<v>") as caught:
        storage.resource("v", op)
    assert (caught.value.code, caught.value.node) == ("E0305", "n1")


@pytest.mark.parametrize(
    ("element", "name"),
    [(f32, "float32"), (f16, "float16"), (bf16, "bfloat16"), (i1, "bool"), (i8, "int8"), (IndexType(), "int64")],
)
def test_names_of_element_types(element: Attribute, name: str) -> None:
    assert dtype_name(TensorType(element, [2])) == name
    assert dtype_name(TensorType(element, [2]), "uint8") == "uint8"


def test_what_cannot_be_scheduled() -> None:
    with pytest.raises(FuselineError, match="cannot be scheduled") as caught:
        dtype_name(TensorType(StringAttr("text"), [2]))
    assert caught.value.code == "E0305"
    with pytest.raises(FuselineError, match="a value of type f32 cannot be scheduled"):
        tensor_type(Block(arg_types=[f32]).args[0])
