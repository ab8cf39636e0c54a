"""Named ops of one scalar function each, as text before `linalg.elementwise` spells them: the same as that op."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fuseline.evaluation import evaluate_function, main_function
from fuseline.ir.context import new_context
from fuseline.ir.linalg_named import NAMED_OPS
from fuseline.ir.linalg_named.functions import FUNCTIONS, ElemwiseBinaryOp, ElemwiseUnaryOp
from fuseline.ir.text import parse_module
from tests.draws import RNG

from .one_op import op_of, refused

UNARY = ("exp", "log", "abs", "ceil", "floor", "negf", "reciprocal", "round", "sqrt", "rsqrt", "square", "tanh", "erf")
BINARY = {"add": "add", "sub": "sub", "mul": "mul", "div": "div", "powf": "powf", "max": "max_signed"} | {
    "min": "min_signed"
}
DTYPES = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "i8": np.int8, "i32": np.int32, "i1": np.bool_}


def _drawn(shape: list[int], element: str) -> Any:
    if element == "i1":
        return RNG.random(shape) < 0.5
    if element.startswith("i"):
        return RNG.integers(1, 100, shape).astype(DTYPES[element]) * RNG.choice([-1, 1], shape).astype(DTYPES[element])
    return RNG.uniform(0.5, 3, shape).astype(DTYPES[element])


def _run(op: str, elements: list[str], arrays: list[Any]) -> Any:
    """`op` of tensors of these elements; the last of them is that of the result."""
    sizes = "".join(f"{size}x" for size in arrays[0].shape)
    types, out = [f"tensor<{sizes}{element}>" for element in elements[:-1]], f"tensor<{sizes}{elements[-1]}>"
    names = [f"%a{i}" for i in range(len(types))]
    given = ", ".join(f"{name}: {type_}" for name, type_ in zip(names, types, strict=True))
    text = f"""func.func @main({given}) -> {out} {{
      %o = tensor.empty() : {out}
      %r = linalg.{op} ins({", ".join(names)} : {", ".join(types)}) outs(%o : {out}) -> {out}
      return %r : {out}
    }}"""
    return evaluate_function(main_function(parse_module(text, new_context())), arrays)[0]


def _shape() -> list[int]:
    return [int(size) for size in RNG.integers(1, 5, RNG.integers(0, 4))]


@pytest.mark.parametrize("name", [*UNARY, *BINARY])
@pytest.mark.parametrize("elements", [("f32", "f32"), ("f64", "f64"), ("f16", "f32"), ("i8", "f32"), ("i8", "f64")])
def test_a_name_stands_for_a_kind(name: str, elements: tuple[str, str]):
    shape, count = _shape(), 1 if name in UNARY else 2
    arrays = [_drawn(shape, elements[0]) for _ in range(count)]
    types = [elements[0]] * count + [elements[1]]
    with np.errstate(all="ignore"):
        expected = _run(f"elementwise <{BINARY.get(name, name)}>", types, arrays)
        found = _run(name, types, arrays)
    assert found.dtype == DTYPES[elements[1]]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "max", "min"])
@pytest.mark.parametrize("element", ["i8", "i32"])
def test_a_name_on_integers(name: str, element: str):
    arrays = [_drawn(_shape(), element)]
    arrays.append(_drawn(list(arrays[0].shape), element))
    np.testing.assert_array_equal(
        _run(name, [element] * 3, arrays), _run(f"elementwise <{BINARY[name]}>", [element] * 3, arrays)
    )


def test_quotients_of_unsigned_numbers():
    arrays = [_drawn([7, 5], "i8"), _drawn([7, 5], "i8")]
    found = _run("div_unsigned", ["i8"] * 3, arrays)
    np.testing.assert_array_equal(found.view(np.uint8), arrays[0].view(np.uint8) // arrays[1].view(np.uint8))


def test_one_of_two():
    shape = _shape()
    condition, a, b = _drawn(shape, "i1"), _drawn(shape, "i8"), _drawn(shape, "i8")
    np.testing.assert_array_equal(
        _run("select", ["i1", "i8", "i8", "i8"], [condition, a, b]), np.where(condition, a, b)
    )


@pytest.mark.parametrize(
    ("source", "target"), [("f32", "f32"), ("f32", "f64"), ("f64", "f16"), ("i8", "f32"), ("i32", "i8"), ("i8", "i32")]
)
@pytest.mark.parametrize("unsigned", [False, True])
def test_a_copy_converts(source: str, target: str, unsigned: bool):
    x = _drawn(_shape(), source)
    cast = " {cast = #linalg.type_fn<cast_unsigned>}" if unsigned else ""
    read = x.view(f"uint{x.itemsize * 8}") if unsigned and source.startswith("i") else x
    np.testing.assert_array_equal(_run(f"copy{cast}", [source, target], [x]), read.astype(DTYPES[target]))


@pytest.mark.parametrize(
    ("op", "kind", "count"),
    [
        ("elemwise_unary", "exp", 1),
        ("elemwise_unary {fun = #linalg.unary_fn<negf>}", "negf", 1),
        ("elemwise_binary", "add", 2),
        ("elemwise_binary {fun = #linalg.binary_fn<max_unsigned>}", "max_unsigned", 2),
        ("elemwise_binary {cast = #linalg.type_fn<cast_signed>, fun = #linalg.binary_fn<mul>}", "mul", 2),
    ],
)
def test_the_function_may_be_an_attribute(op: str, kind: str, count: int):
    shape, element = _shape(), "f32" if count == 1 else "i32"
    arrays = [_drawn(shape, element) for _ in range(count)]
    types = [element] * (count + 1)
    np.testing.assert_array_equal(_run(op, types, arrays), _run(f"elementwise <{kind}>", types, arrays))


@pytest.mark.parametrize("op", FUNCTIONS, ids=lambda op: op.name)
def test_what_is_printed_is_read(op: Any):
    binary = op is ElemwiseBinaryOp or op.KIND in (*BINARY.values(), "div_unsigned")
    count = 3 if op.KIND == "select" else 2 if binary else 1
    element = "i32" if op.KIND == "div_unsigned" else "f32"
    names = ["%c", "%a", "%a"] if count == 3 else ["%a"] * count
    types = {"%c": "tensor<4x5xi1>", "%a": f"tensor<4x5x{element}>"}
    ins = f"ins({', '.join(names)} : {', '.join(types[name] for name in names)})"
    text = f"%r = {op.name} {{kept}} {ins} outs(%o : {types['%a']}) -> {types['%a']}"
    given = f"%c: {types['%c']}, %a: {types['%a']}, %o: {types['%a']}"
    assert "kept" in op_of(op, text, given).attributes


def test_a_function_that_is_not_known():
    given = "%a: tensor<4xf32>, %o: tensor<4xf32>"
    ends = "ins(%a : tensor<4xf32>) outs(%o : tensor<4xf32>) -> tensor<4xf32>"
    text = f"%r = linalg.elemwise_unary {{fun = #linalg.unary_fn<sinh>}} {ends}"
    refused(text, given, says="unknown function sinh", code="E0301")
    assert ElemwiseUnaryOp in NAMED_OPS


@pytest.mark.parametrize(("name", "given", "wanted"), [("powf", 1, 2), ("erf", 2, 1), ("select", 2, 3), ("add", 3, 2)])
def test_a_number_of_operands_that_it_does_not_read(name: str, given: int, wanted: int):
    types = ", ".join(["tensor<4xf32>"] * given)
    ends = f"ins({', '.join(['%a'] * given)} : {types}) outs(%o : tensor<4xf32>) -> tensor<4xf32>"
    says = f"{name} reads {wanted} operands, not {given}"
    refused(f"%r = linalg.{name} {ends}", "%a: tensor<4xf32>, %o: tensor<4xf32>", says=says, code="E0301")
