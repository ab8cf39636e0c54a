"""Named ops with a syntax of their own: elementwise kinds, written bodies, tiles."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.linalg.attrs import IteratorType
from xdsl.ir.affine import AffineMap

from fuseline.evaluation import evaluate_function, main_function
from fuseline.ir.build import dims_map
from fuseline.ir.context import new_context
from fuseline.ir.linalg_named.elementwise import KINDS, ElementwiseOp
from fuseline.ir.linalg_named.packing import PackOp, SoftmaxOp, UnPackOp
from fuseline.ir.linalg_named.regions import MapOp, ReduceOp
from fuseline.ir.text import parse_module

from .one_op import op_of, refused


def _half_away(x: Any) -> Any:
    return np.sign(x) * np.floor(np.abs(x) + 0.5)


FUNCTIONS: dict[str, Any] = {
    "exp": np.exp,
    "log": np.log,
    "abs": np.abs,
    "ceil": np.ceil,
    "floor": np.floor,
    "negf": np.negative,
    "reciprocal": lambda x: 1 / x,
    "round": _half_away,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "square": np.square,
    "tanh": np.tanh,
    "erf": np.vectorize(math.erf),
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "max_signed": np.maximum,
    "min_signed": np.minimum,
    "max_unsigned": np.maximum,
    "min_unsigned": np.minimum,
    "powf": np.power,
    "div_unsigned": lambda a, b: a.view(np.uint8) // b.view(np.uint8),
    "select": np.where,
}
INTEGERS: dict[str, Any] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": lambda a, b: np.trunc(a.astype(float) / b).astype(np.int8),
    "max_signed": np.maximum,
    "min_signed": np.minimum,
    "max_unsigned": lambda a, b: np.maximum(a.view(np.uint8), b.view(np.uint8)),
    "min_unsigned": lambda a, b: np.minimum(a.view(np.uint8), b.view(np.uint8)),
    "div_unsigned": lambda a, b: a.view(np.uint8) // b.view(np.uint8),
}
ONE = {"exp", "log", "abs", "ceil", "floor", "negf", "reciprocal", "round", "sqrt", "rsqrt", "square", "tanh", "erf"}


def _run(kind: str, types: list[str], arrays: list[Any]) -> Any:
    arguments = ", ".join(f"%a{i}: tensor<20x{type_}>" for i, type_ in enumerate(types))
    names, last = ", ".join(f"%a{i}" for i in range(len(types))), types[-1]
    ins = ", ".join(f"tensor<20x{type_}>" for type_ in types)
    text = f"""func.func @main({arguments}) -> tensor<20x{last}> {{
      %o = tensor.empty() : tensor<20x{last}>
      %r = linalg.elementwise <{kind}> ins({names} : {ins}) outs(%o : tensor<20x{last}>) -> tensor<20x{last}>
      return %r : tensor<20x{last}>
    }}"""
    return evaluate_function(main_function(parse_module(text, new_context())), arrays)[0]


def test_every_kind_is_tested_here():
    assert KINDS.keys() == FUNCTIONS.keys()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "div_unsigned"])
def test_a_kind_on_floats(kind: str):
    rng = np.random.default_rng()
    arrays: list[Any] = [rng.uniform(0.5, 3, 20).astype(np.float32) for _ in range(1 if kind in ONE else 2)]
    if kind in ("abs", "ceil", "floor", "negf", "tanh", "erf", "add", "sub", "max_signed", "min_signed"):
        arrays = [array - np.float32(1.7) for array in arrays]
    types = ["f32"] * len(arrays)
    if kind == "select":
        arrays, types = [rng.random(20) < 0.5, *arrays], ["i1", *types]
    np.testing.assert_allclose(_run(kind, types, arrays), FUNCTIONS[kind](*arrays), rtol=1e-5, atol=1e-6)


def test_half_is_rounded_away_from_zero():
    halves = np.arange(-10, 10, dtype=np.float32) + np.float32(0.5)
    np.testing.assert_array_equal(_run("round", ["f32"], [halves]), _half_away(halves))


@pytest.mark.parametrize("kind", INTEGERS)
def test_a_kind_on_integers(kind: str):
    rng = np.random.default_rng()
    a, b = rng.integers(-127, 128, 20).astype(np.int8), rng.integers(1, 128, 20).astype(np.int8)
    b[::3] = -b[::3]
    np.testing.assert_array_equal(_run(kind, ["i8", "i8"], [a, b]), INTEGERS[kind](a, b).astype(np.int8))


AB = "%a: tensor<4x5xf32>, %b: tensor<5xf32>, %o: tensor<4x5xf32>"
PLAIN = "%r = linalg.elementwise <exp> ins(%a : tensor<4x5xf32>) outs(%o : tensor<4x5xf32>) -> tensor<4x5xf32>"
MAPPED = """%r = linalg.elementwise <add> indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>,
  affine_map<(i, j) -> (i, j)>] ins(%a, %b : tensor<4x5xf32>, tensor<5xf32>) outs(%o : tensor<4x5xf32>) ->
    tensor<4x5xf32>"""


def test_maps_default_to_identities():
    plain, mapped = op_of(ElementwiseOp, PLAIN, AB), op_of(ElementwiseOp, MAPPED, AB)
    assert list(plain.get_default_indexing_maps()) == [AffineMap.identity(2)] * 2
    assert list(mapped.get_default_indexing_maps())[1] == AffineMap.from_callable(lambda i, j: (j,))
    assert [kind.data for kind in mapped.get_iterator_types()] == [IteratorType.PARALLEL] * 2
    assert "kept" in op_of(ElementwiseOp, PLAIN.replace("> ins", "> {kept} ins"), AB).attributes
    refused(PLAIN.replace("<exp>", "<sinh>"), AB, says="unknown elementwise kind sinh", code="E0301")


# written bodies -------------------------------------------------------------------------------------------------------

XO = (
    "%x: tensor<4x8xf32>, %o: tensor<4xf32>, %p: tensor<8xf32>, "
    "%y: tensor<4x8xf32>, %m: tensor<4x8xi32>, %n: tensor<4xi32>"
)


@pytest.mark.parametrize(
    ("text", "inputs", "ops"),
    [
        ("%r = linalg.map { math.exp } ins(%x : tensor<4x8xf32>) outs(%y : tensor<4x8xf32>)", 1, ["math.exp"]),
        (
            "%r = linalg.map { arith.addf } ins(%x, %x : tensor<4x8xf32>, tensor<4x8xf32>) outs(%y : tensor<4x8xf32>)",
            2,
            ["arith.addf"],
        ),
        (
            """%r = linalg.map outs(%y : tensor<4x8xf32>) {kept}
           (%o0: f32) { %z = arith.negf %o0 : f32
             linalg.yield %z : f32 }""",
            0,
            ["arith.negf"],
        ),
    ],
)
def test_maps_of_bodies(text: str, inputs: int, ops: list[str]):
    op = op_of(MapOp, text, XO)
    assert [inner.name for inner in op.body.block.ops] == [*ops, "linalg.yield"]
    assert op.loops() == ([AffineMap.identity(2)] * (inputs + 1), [IteratorType.PARALLEL] * 2)
    assert len(op.inputs) == inputs and op.outputs == (op.init,) and ("kept" in op.attributes) == ("kept" in text)


@pytest.mark.parametrize(
    ("dimensions", "init", "kept"), [([1], "%o : tensor<4xf32>", [0]), ([0], "%p : tensor<8xf32>", [1])]
)
def test_reductions(dimensions: list[int], init: str, kept: list[int]):
    text = f"%r = linalg.reduce {{ arith.addf }} ins(%x : tensor<4x8xf32>) outs({init}) dimensions = {dimensions}"
    op = op_of(ReduceOp, text, XO)
    maps, kinds = op.loops()
    assert maps == [AffineMap.identity(2), dims_map(2, kept)]
    assert [kind is IteratorType.REDUCTION for kind in kinds] == [d in dimensions for d in range(2)]
    # the shorthand combines what there is so far with the element
    assert [value.index for value in op.body.block.first_op.operands] == [1, 0]  # pyright: ignore
    assert list(op.outputs) == list(op.inits)


def test_two_inputs_are_reduced_together():
    text = """%r:2 = linalg.reduce ins(%x, %m : tensor<4x8xf32>, tensor<4x8xi32>)
      outs(%o, %n : tensor<4xf32>, tensor<4xi32>) dimensions = [1] {kept}
      (%a: f32, %b: i32, %u: f32, %v: i32) { linalg.yield %a, %b : f32, i32 }"""
    op = op_of(ReduceOp, text, XO)
    assert len(op.loops()[0]) == 4 and len(op.res) == 2 and "kept" in op.attributes


@pytest.mark.parametrize(
    ("text", "says", "code"),
    [
        (
            "linalg.map { no.such } ins(%x : tensor<4x8xf32>) outs(%y : tensor<4x8xf32>)",
            "unknown payload operation",
            "E0301",
        ),
        (
            "linalg.map ins(%x : tensor<4x8xf32>) outs(%y : tensor<4x8xf32>) (%a: f32) { linalg.yield %a : f32 }",
            "expected 2 body arguments, got 1",
            "E0302",
        ),
        (
            "linalg.reduce { arith.addf } ins(%x : tensor<4x8xf32>) outs(%o : tensor<4xf32>) dimensions = [2]",
            "do not increase within rank 2",
            "E0302",
        ),
        (
            "linalg.reduce { arith.addf } ins(%x : tensor<4x8xf32>) outs(%o : tensor<4xf32>) dimensions = [-1]",
            "do not increase within rank 2",
            "E0302",
        ),
        (
            "linalg.reduce { arith.addf } ins(%x : tensor<4x8xf32>) outs(%o : tensor<4xf32>) dimensions = [1, 0]",
            "do not increase within rank 2",
            "E0302",
        ),
        (
            "linalg.reduce { arith.addf } ins(%x : tensor<4x8xf32>) outs(%o : tensor<4xf32>) dimensions = [0, 1]",
            "the output's rank",
            "E0302",
        ),
        (
            (
                "linalg.reduce ins(%x : tensor<4x8xf32>) outs(%o : tensor<4xf32>) "
                "dimensions = [1] (%a: f32) { linalg.yield %a : f32 }"
            ),
            "expected 2 body arguments",
            "E0302",
        ),
    ],
)
def test_bodies_that_do_not_fit(text: str, says: str, code: str):
    refused(f"%r = {text}", XO, says=says, code=code)


# tiles ----------------------------------------------------------------------------------------------------------------

TILES = "%a: tensor<30x32xf32>, %o: tensor<2x2x16x16xf32>, %c: f32, %n: index, %d: tensor<2x?x16x?xf32>"
PACK = """%r = linalg.pack %a padding_value(%c : f32) outer_dims_perm = [1, 0] inner_dims_pos = [0, 1]
  inner_tiles = [16, 16] into %o : tensor<30x32xf32> -> tensor<2x2x16x16xf32>"""
UNPACK = (
    "%r = linalg.unpack %o inner_dims_pos = [0, 1] inner_tiles = "
    "[16, 16] into %a : tensor<2x2x16x16xf32> -> tensor<30x32xf32>"
)


def test_packs_read_back():
    op = op_of(PackOp, PACK, TILES)
    assert op.permutation() == (1, 0) and op.padding_value is not None and len(op.inner_tiles) == 0
    plain = PACK.replace("padding_value(%c : f32) outer_dims_perm = [1, 0] ", "").replace("into %o", "into %o {kept}")
    other = op_of(PackOp, plain, TILES)
    assert other.permutation() == (0, 1) and other.padding_value is None and "kept" in other.attributes


def test_tiles_may_be_sizes():
    text = PACK.replace("[16, 16] into %o", "[16, %n] into %d").replace(
        "-> tensor<2x2x16x16xf32>", "-> tensor<2x?x16x?xf32>"
    )
    assert len(op_of(PackOp, text, TILES).inner_tiles) == 1


def test_unpacks_read_back():
    op = op_of(UnPackOp, UNPACK, TILES)
    assert op.permutation() == (0, 1) and list(op.static_inner_tiles.get_values()) == [16, 16]
    turned = UNPACK.replace("inner_dims_pos", "outer_dims_perm = [1, 0] inner_dims_pos")
    assert op_of(UnPackOp, turned, TILES).permutation() == (1, 0)


@pytest.mark.parametrize("text", [PACK, UNPACK.replace("%o inner", "%o outer_dims_perm = [1, 0] inner")])
@pytest.mark.parametrize(
    ("change", "says", "code"),
    [
        (("outer_dims_perm = [1, 0]", "outer_dims_perm = [1, 1]"), "is no permutation of 2 dimensions", "E0302"),
        (("outer_dims_perm = [1, 0]", "outer_dims_perm = [0]"), "is no permutation of 2 dimensions", "E0302"),
        (("inner_dims_pos = [0, 1]", "inner_dims_pos = [0, 0]"), "do not describe tiles of rank 2", "E0302"),
        (("inner_dims_pos = [0, 1]", "inner_dims_pos = [0, 2]"), "do not describe tiles of rank 2", "E0302"),
        (("inner_dims_pos = [0, 1]", "inner_dims_pos = [-1, 1]"), "do not describe tiles of rank 2", "E0302"),
        (("inner_dims_pos = [0, 1]", "inner_dims_pos = [1]"), "do not describe tiles of rank 2", "E0302"),
        (("inner_dims_pos = [0, 1]", ""), "expected inner_dims_pos", "E0301"),
        (("[0, 1]", "[1]"), "tiles of rank 2", "E0302"),
        (("[16, 16]", "[16]"), "tiles of rank 2", "E0302"),
    ],
)
def test_tilings_that_do_not_fit(text: str, change: tuple[str, str], says: str, code: str):
    assert change[0] in text
    refused(text.replace(*change), TILES, says=says, code=code)


@pytest.mark.parametrize("text", [PACK, UNPACK])
def test_the_packed_rank(text: str):
    text = text.replace("inner_dims_pos = [0, 1]", "inner_dims_pos = [0]").replace("[16, 16]", "[16]")
    refused(text, TILES, says="the packed rank is 4, expected 3")


SOFTMAX = (
    "%r = linalg.softmax dimension(1) ins(%a : tensor<30x32xf32>) outs(%a : tensor<30x32xf32>) -> tensor<30x32xf32>"
)


def test_softmaxes():
    op = op_of(SoftmaxOp, SOFTMAX, TILES)
    assert op.dimension.value.data == 1 and op.input is op.output
    assert "kept" in op_of(SoftmaxOp, SOFTMAX.replace("softmax", "softmax {kept}"), TILES).attributes
    for axis in (2, -1):
        refused(SOFTMAX.replace("(1)", f"({axis})"), TILES, says=f"dimension {axis} of a tensor of rank 2")
