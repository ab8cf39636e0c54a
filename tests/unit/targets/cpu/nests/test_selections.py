"""Argument reductions along memory: elements, places, ties and NaN, on every ISA, every size, both ends of a page."""

from __future__ import annotations

import numpy as np
import onnxruntime as ort
import pytest
from onnx import ModelProto

import fuseline
from fuseline.targets.cpu.families.sequential.selection import SelectionFamily
from fuseline.targets.cpu.isa import ISA_NAMES, machine
from fuseline.targets.target import Refusal
from tests.graphs.onnx_text import onnx_model

from .generics import fill, function, generic, tensor
from .texts import build, check, parse

FIRST_LARGEST = "%c = arith.cmpf ogt, %i0, %o0 : f32"
LAST_LARGEST = "%c = arith.cmpf oge, %i0, %o0 : f32"
FIRST_NAN = """%g = arith.cmpf ogt, %i0, %o0 : f32
%n = arith.cmpf une, %i0, %i0 : f32
%e = arith.ori %g, %n : i1
%m = arith.cmpf oeq, %o0, %o0 : f32
%c = arith.andi %e, %m : i1"""


def selection(
    shape: tuple[int | str, ...],
    condition: str = FIRST_LARGEST,
    *,
    axis: int = -1,
    element: str = "f32",
    after: str = "",
) -> str:
    """The kept element and its place along `axis` of a tensor; `after` may change what is yielded."""
    rank, axis = len(shape), axis % len(shape)
    kept = tuple(size for i, size in enumerate(shape) if i != axis)
    loops = [f"d{i}" for i in range(rank)]
    outer = ", ".join(loop for i, loop in enumerate(loops) if i != axis)
    kinds = "".join("r" if i == axis else "p" for i in range(rank))
    body = f"""%w = linalg.index {axis} : index
%p = arith.index_cast %w : index to i64
{condition.replace("f32", element)}
%v = arith.select %c, %i0, %o0 : {element}
%q = arith.select %c, %p, %o1 : i64
{after}"""
    values, places = tensor(kept, element), tensor(kept, "i64")
    inputs, outputs, maps = (
        [("%x", tensor(shape, element))],
        [("%f", values), ("%z", places)],
        [", ".join(loops), outer],
    )
    op = generic("%y, %at", inputs, outputs, [*maps, outer], kinds, body, [("%v", element), ("%q", "i64")])
    start = "-1.0e+4" if element.startswith("f") else "-2147483648"
    names = sorted({s for s in shape if isinstance(s, str)})
    inits = fill("f", start, kept, element) + "\n" + fill("z", "0", kept, "i64")
    return function([("x", shape, element)], names, f"{inits}\n{op}", [("%y", values), ("%at", places)])


@pytest.mark.parametrize("columns", [1, 2, 7, 16, 17, 64, 129, 333])
@pytest.mark.parametrize("condition", [FIRST_LARGEST, LAST_LARGEST, FIRST_NAN])
def test_lines_of_every_length(columns: int, condition: str):
    check(selection((5, columns), condition), family="selection")


@pytest.mark.parametrize("isa", ISA_NAMES)
@pytest.mark.parametrize("element", ["f32", "f64", "i32", "i64"])
def test_every_isa_and_element(isa: str, element: str):
    condition = FIRST_LARGEST if element.startswith("f") else "%c = arith.cmpi sgt, %i0, %o0 : f32"
    text = selection((3, 45), condition, element=element)
    assert build(parse(text), machine(isa)).family.name == "selection"
    if isa in (machine().name, "baseline") and isa != "neon":
        check(text, isa=machine(isa), family="selection")


@pytest.mark.parametrize("sizes", [{"n": 1, "m": 1}, {"n": 3, "m": 40}, {"n": 9, "m": 515}])
def test_any_size(sizes: dict[str, int]):
    check(selection(("n", "m")), sizes=sizes, family="selection")


REFUSED = {
    "across memory": (selection((5, 9), axis=0), "across-memory"),
    "halves": (selection((5, 9), element="f16"), "element-type"),
    "a condition that knows its place": (
        selection((5, 9), "%k = arith.constant 3 : index\n%h = linalg.index 1 : index\n%c = arith.cmpi slt, %h, %k : "
                          "index"), "not-a-selection"),
    "a condition on the kept place": (selection((5, 9), "%c = arith.cmpi slt, %p, %o1 : i64"), "not-a-selection"),
    "nothing to go over": (selection((5, 0)), "empty"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_left_to_others(name: str):
    text, code = REFUSED[name]
    found = SelectionFamily().accepts(parse(text), machine())
    assert isinstance(found, Refusal) and found.code == code


def model(op: str, shape: tuple[int, ...], last: int, keep: int) -> ModelProto:
    """ArgMax or ArgMin along the last axis."""
    options = f"axis = -1, keepdims = {keep}, select_last_index = {last}"
    return onnx_model(f"(float{list(shape)} x) => (int64[] y) {{ y = {op}<{options}>(x) }}")


@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("columns", [3, 31, 200])
def test_ties_and_infinities_as_onnxruntime(op: str, last: int, columns: int):
    """Few different numbers, so that most lines have ties in several lanes and vectors; whole lines of infinities."""
    rng = np.random.default_rng(columns)
    x = rng.choice(np.array([-np.inf, -1.0, -0.0, 0.0, 2.0, np.inf], np.float32), (40, columns))
    x[0], x[1] = -np.inf, np.inf
    proto = model(op, (40, columns), last, 0)
    expected = ort.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, {"x": x})[
        0
    ]
    program = fuseline.compile(proto, threads=1)
    assert "selection" in program.stats["families"]
    np.testing.assert_array_equal(program.run({"x": x})["y"], expected)


@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("columns", [3, 31, 200])
def test_the_first_nan_counts_as_numpy_has_it(op: str, columns: int):
    rng = np.random.default_rng(columns)
    x = rng.standard_normal((30, columns)).astype(np.float32)
    x[rng.random(x.shape) < 0.05] = np.nan
    found = fuseline.compile(model(op, (30, columns), 0, 0), threads=1).run({"x": x})["y"]
    np.testing.assert_array_equal(found, x.argmax(1) if op == "ArgMax" else x.argmin(1))
