"""Which bodies are sums of products of narrow integers, or of widened weights."""

from __future__ import annotations

import numpy as np
import pytest

import fuseline
from fuseline.analysis.narrow_products import in_pairs, multiplies_narrow, unsigned_inputs, widens_weights
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model
from tests.unit.analysis.generics import generic, op_of


def _product(types: tuple[str, str, str], body: str):
    maps = ["d0, d2", "d2, d1", "d0, d1"]
    a, b, out = (f"tensor<{shape}x{element}>" for shape, element in zip(("3x5", "5x4", "3x4"), types, strict=True))
    return op_of(generic(maps, "ppr", [a, b], [out], body))


def _integers(
    first: str = "extsi", second: str = "extsi", types: tuple[str, str] = ("i8", "i16"), total: str = "%a2, %m"
) -> str:
    return f"""%x = arith.{first} %a0 : {types[0]} to i32
    %y = arith.{second} %a1 : {types[1]} to i32
    %m = arith.muli %x, %y : i32
    %s = arith.addi {total} : i32
    linalg.yield %s : i32"""


def _weights(x: str, first: str, second: str) -> str:
    return f"%w = {x}\n %m = arith.mulf {first}, {second} : f32\n %s = arith.addf %a2, %m : f32\n linalg.yield %s : f32"


@pytest.mark.parametrize("types", [("i8", "i8"), ("i8", "i16"), ("i16", "i16")])
@pytest.mark.parametrize("total", ["%a2, %m", "%m, %a2"])
def test_narrow_integers(types: tuple[str, str], total: str):
    assert multiplies_narrow(_product((*types, "i32"), _integers(types=types, total=total)))


@pytest.mark.parametrize(
    ("signs", "unsigned"), [(("extsi", "extsi"), ()), (("extui", "extsi"), (0,)), (("extsi", "extui"), (1,))]
)
def test_bytes_may_be_without_a_sign(signs: tuple[str, str], unsigned: tuple[int, ...]):
    op = _product(("i8", "i8", "i32"), _integers(*signs, ("i8", "i8")))
    assert multiplies_narrow(op) and unsigned_inputs(op) == frozenset(unsigned)


@pytest.mark.parametrize(
    ("types", "body"),
    [
        (("i16", "i8", "i32"), _integers("extui", "extsi", ("i16", "i8"))),
        (("i8", "i16", "i32"), _integers("extsi", "extui", ("i8", "i16"))),
        (("i4", "i8", "i32"), _integers(types=("i4", "i8"))),
        (
            ("i32", "i8", "i32"),
            (
                "%y = arith.extsi %a1 : i8 to i32\n %m = arith.muli %a0, %y : i32\n %s = arith.addi %a2, %m : i32\n "
                "linalg.yield %s : i32"
            ),
        ),
        (("i8", "i8", "i64"), _integers(types=("i8", "i8")).replace("i32", "i64")),
    ],
    ids=["left of 16 bits unsigned", "right of 16 bits unsigned", "4 bits", "not extended", "added up in 64 bits"],
)
def test_other_integers_are_not(types: tuple[str, str, str], body: str):
    assert not multiplies_narrow(_product(types, body))


def test_a_sum_without_a_product_is_neither():
    body = "%x = arith.extsi %a0 : i8 to i32\n %s = arith.addi %a1, %x : i32\n linalg.yield %s : i32"
    assert not multiplies_narrow(op_of(generic(["d0, d1", "d0"], "pr", ["tensor<3x5xi8>"], ["tensor<3xi32>"], body)))
    body = "%x = arith.sitofp %a0 : i8 to f32\n %s = arith.addf %a1, %x : f32\n linalg.yield %s : f32"
    assert not widens_weights(op_of(generic(["d0, d1", "d0"], "pr", ["tensor<3x5xi8>"], ["tensor<3xf32>"], body)))


@pytest.mark.parametrize("order", [("%a0", "%w"), ("%w", "%a0")])
def test_widened_weights(order: tuple[str, str]):
    assert widens_weights(_product(("f32", "i8", "f32"), _weights("arith.sitofp %a1 : i8 to f32", *order)))


@pytest.mark.parametrize(
    ("types", "body"),
    [
        (("f32", "i8", "f32"), _weights("arith.uitofp %a1 : i8 to f32", "%a0", "%w")),
        (("f32", "i16", "f32"), _weights("arith.sitofp %a1 : i16 to f32", "%a0", "%w")),
        (("f32", "f32", "f32"), _weights("arith.constant 1.0 : f32", "%a0", "%a1")),
        (("i8", "i8", "f32"), _weights("arith.sitofp %a1 : i8 to f32\n %v = arith.sitofp %a0 : i8 to f32", "%v", "%w")),
        (("f64", "i8", "f64"), _weights("arith.sitofp %a1 : i8 to f64", "%a0", "%w").replace("f32", "f64")),
    ],
    ids=["unsigned", "16 bits", "no weights", "both converted", "f64"],
)
def test_other_products_are_not_of_weights(types: tuple[str, str, str], body: str):
    assert not widens_weights(_product(types, body))


def test_products_of_floats_are_not_of_integers():
    assert not multiplies_narrow(_product(("f32", "f32", "f32"), _weights("arith.constant 1.0 : f32", "%a0", "%a1")))
    assert not widens_weights(_product(("i8", "i8", "i32"), _integers(types=("i8", "i8"))))


def test_steps_in_pairs():
    even = 2 * int(RNG.integers(1, 50))
    assert in_pairs(even) == 0.5 and in_pairs(even - 1) * (even - 1) == pytest.approx(even / 2)


@pytest.mark.parametrize("target", ["interpreter", "cpu", "null"])
@pytest.mark.parametrize("extents", [(2, 0, 3), (0, 4, 3), (2, 4, 0), (0, 0, 3)])
def test_sums_over_nothing(extents: tuple[int, int, int], target: str):
    m, k, n = extents
    lines = (
        "q = QuantizeLinear(x, s, z)  d = DequantizeLinear(q, s, z)  e = DequantizeLinear(w, s, z)  y = MatMul(d, e)"
    )
    values = {"s": np.float32(0.05), "z": np.int8(3), "w": RNG.integers(-90, 90, (2, k, n)).astype(np.int8)}
    model = onnx_model(f"(float[2, {m}, {k}] x) => (float[2, {m}, {n}] y) {{ {lines} }}", values, opset=20)
    program = fuseline.compile(model, target=target)
    if target != "null":
        (found,) = program.run({"x": RNG.normal(size=(2, m, k)).astype(np.float32)}).values()
        assert found.shape == (2, m, n) and not found.any()
