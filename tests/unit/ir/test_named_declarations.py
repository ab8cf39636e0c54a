"""Named ops against what their names say: layouts read off the names, products against einsum."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pytest
from xdsl.builder import ImplicitBuilder
from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, bf16, f16, f32, f64, i1, i8, i32, i64
from xdsl.dialects.linalg.attrs import IteratorType
from xdsl.ir import Attribute, Block
from xdsl.ir.affine import AffineMap

from fuseline.evaluation import evaluate_function, main_function
from fuseline.ir.context import new_context
from fuseline.ir.linalg_named.base import DeclaredOp, TypeFn, TypeFnAttr, add, cast_to, multiply, read_loops
from fuseline.ir.linalg_named.contractions import CONTRACTIONS, ContractOp, MatmulOp
from fuseline.ir.linalg_named.convolutions import CONVOLUTIONS
from fuseline.ir.linalg_named.poolings import POOLINGS
from fuseline.ir.linalg_named.quantized_convolutions import QUANTIZED_CONVOLUTIONS
from fuseline.ir.text import parse_module, print_module
from tests.draws import RNG

from .one_op import op_of, refused

Declared = type[DeclaredOp]


def _dims(op: Declared, operand: int) -> list[str]:
    """The dimensions of an operand by name; of a window that of the result."""
    loops = read_loops(op.LOOPS)
    return [loops.names[loop] for loop, _ in loops.operands[operand]]


def _letters(layout: str) -> list[str]:
    """`nhwgc` as the loops are called: spatial dimensions are those of the result."""
    return [f"o{letter}" if letter in "dhw" else letter for letter in layout]


def _layouts(op: Declared) -> tuple[str, str, int] | None:
    """The layouts of image and filter in the name, and how many spatial dimensions there are."""
    found = re.fullmatch(r"linalg\.(?:depthwise_)?conv_(\d)d(?:_([a-z]+)_([a-z]+))?(?:_q)?", op.name)
    assert found is not None, op.name
    return (found[2] or "dhw"[3 - int(found[1]) :], found[3] or "dhw"[3 - int(found[1]) :], int(found[1]))


@pytest.mark.parametrize("op", [*CONVOLUTIONS, *QUANTIZED_CONVOLUTIONS], ids=lambda op: op.name)
def test_a_convolution_lies_as_its_name_says(op: Declared):
    layouts = _layouts(op)
    assert layouts is not None
    image, filter_, count = layouts
    loops = read_loops(op.LOOPS)
    assert _dims(op, 0) == _letters(image)
    assert _dims(op, 1) == [f"k{letter}" if letter in "dhw" else letter for letter in filter_]
    windows = [(loops.names[loop], loops.names[tap]) for loop, tap in loops.operands[0] if tap is not None]
    assert windows == [(f"o{letter}", f"k{letter}") for letter in "dhw"[3 - count :]]
    # the result lies like the image, with filters in place of channels (inside of a group, or of a channel)
    result, depthwise = _dims(op, -1), "depthwise" in op.name
    if depthwise:
        assert result == _letters(image) + (["m"] if "m" in filter_ else [])
    else:
        assert result == [{"c": "f"}.get(letter, letter) for letter in _letters(image)]
    assert set(loops.names[: loops.parallel]) == set(result)
    assert len(loops.operands) == (5 if op in QUANTIZED_CONVOLUTIONS else 3)
    assert all(not dims for dims in loops.operands[2:-1])  # zero points


@pytest.mark.parametrize("op", POOLINGS, ids=lambda op: op.name)
def test_a_pooling_lies_as_its_name_says(op: Declared):
    found = re.fullmatch(r"linalg\.pooling_([ncdhw]+)_(sum|max|min)(_unsigned)?", op.name)
    assert found is not None
    layout = _letters(found[1])
    assert _dims(op, 0) == _dims(op, -1) == layout
    assert _dims(op, 1) == [f"k{letter}" for letter in found[1] if letter in "dhw"]
    with ImplicitBuilder(Block(arg_types=[i8, i8, i32])) as (value, window, out):
        body = op.scalar([value, window, out], False)
    kind = {"sum": "addi", "max": "maxsi", "min": "minsi"}[found[2]]
    assert body.owner.name == f"arith.{kind.replace('si', 'ui') if found[3] else kind}"  # pyright: ignore
    widened = body.owner.operands[1].owner  # pyright: ignore
    assert isinstance(widened, arith.ExtUIOp if found[3] else arith.ExtSIOp)


EINSUM = {
    "matmul": "mk,kn->mn",
    "batch_matmul": "bmk,bkn->bmn",
    "batch_reduce_matmul": "bmk,bkn->mn",
    "matmul_unsigned": "mk,kn->mn",
    "matmul_transpose_a": "km,kn->mn",
    "matmul_transpose_b": "mk,nk->mn",
    "batch_matmul_transpose_a": "bkm,bkn->bmn",
    "batch_matmul_transpose_b": "bmk,bnk->bmn",
    "dot": "k,k->",
    "matvec": "mk,k->m",
    "vecmat": "k,kn->n",
    "batch_matvec": "bmk,bk->bm",
    "batch_vecmat": "bk,bkn->bn",
    "mmt4d": "MKmk,NKnk->MNmn",
    "batch_mmt4d": "bMKmk,bNKnk->bMNmn",
    "quantized_matmul": "mk,kn->mn",
    "quantized_batch_matmul": "bmk,bkn->bmn",
}
DTYPES = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "i8": np.int8}
SIZES = dict(zip("bmknMKN", (2, 3, 4, 5, 2, 3, 4), strict=True))


def _type(dims: str, element: str) -> str:
    return f"tensor<{''.join(f'{SIZES[name]}x' for name in dims)}{element}>"


@pytest.mark.parametrize(
    ("name", "cast"),
    [
        (name, cast)
        for name in EINSUM
        for cast in ("", "unsigned")
        if not (cast and name.startswith(("quantized", "matmul_unsigned")))
    ],
)
def test_a_product_is_that_of_einsum(name: str, cast: str):
    quantized = "quantized" in name
    left, right, out = re.split(",|->", EINSUM[name])
    types, result = [_type(left, "i8"), _type(right, "i8")], _type(out, "i32")
    zeros = ", %p, %q", ", i32, i32", ", %p: i32, %q: i32"
    names, more, arguments = zeros if quantized else ("", "", "")
    attribute = "{cast = #linalg.type_fn<cast_unsigned>} " if cast else ""
    text = f"""func.func @main(%a: {types[0]}, %b: {types[1]}, %o: {result}{arguments}) -> {result} {{
      %r = linalg.{name} {attribute}ins(%a, %b{names} : {types[0]}, {types[1]}{more}) outs(%o : {result}) -> {result}
      return %r : {result}
    }}"""
    a, b = (RNG.integers(-128, 128, [SIZES[n] for n in dims]).astype(np.int8) for dims in (left, right))
    o = RNG.integers(-9, 9, [SIZES[n] for n in out]).astype(np.int32)
    points = [np.int32(3), np.int32(-5)] if quantized else []
    found = evaluate_function(main_function(parse_module(text, new_context())), [a, b, o, *points])[0]
    unsigned = cast or "unsigned" in name
    wide = [(x.view(np.uint8) if unsigned else x).astype(np.int64) for x in (a, b)]
    wide = [x - zero for x, zero in zip(wide, points or (0, 0), strict=True)]
    np.testing.assert_array_equal(found, o + np.einsum(EINSUM[name], *wide))


@pytest.mark.parametrize("name", [name for name in EINSUM if "quantized" not in name and "unsigned" not in name])
@pytest.mark.parametrize(("left", "right", "out"), [("f16", "f16", "f32"), ("i8", "f32", "f32"), ("f32", "f16", "f64")])
def test_a_product_widens_what_it_multiplies(name: str, left: str, right: str, out: str):
    dims = re.split(",|->", EINSUM[name])
    a, b, result = (_type(which, element) for which, element in zip(dims, (left, right, out), strict=True))
    text = f"""func.func @main(%a: {a}, %b: {b}, %o: {result}) -> {result} {{
      %r = linalg.{name} ins(%a, %b : {a}, {b}) outs(%o : {result}) -> {result}
      return %r : {result}
    }}"""
    arrays = [
        RNG.integers(-9, 9, [SIZES[n] for n in which]).astype(DTYPES[element])
        for which, element in zip(dims, (left, right, out), strict=True)
    ]
    found = evaluate_function(main_function(parse_module(text, new_context())), arrays)[0]
    wide = [x.astype(np.float64) for x in arrays]
    assert found.dtype == DTYPES[out]
    np.testing.assert_array_equal(found, wide[2] + np.einsum(EINSUM[name], *wide[:2]))


def test_every_product_is_tested_here():
    assert {op.name.removeprefix("linalg.") for op in CONTRACTIONS} == {*EINSUM, "contract"}


CONTRACT = """%r = linalg.contract indexing_maps = [affine_map<(i, j, k) -> (k, i)>, affine_map<(i, j, k) -> (j, k)>,
  affine_map<(i, j, k) -> (j, i)>] ins(%a, %b : tensor<4x3xf32>, tensor<5x4xf32>) outs(%o : tensor<5x3xf32>) ->
    tensor<5x3xf32>"""
ABO = "%a: tensor<4x3xf32>, %b: tensor<5x4xf32>, %o: tensor<5x3xf32>"


def test_the_loops_of_a_contract_follow_from_its_result():
    op = op_of(ContractOp, CONTRACT, ABO)
    p, r = IteratorType.PARALLEL, IteratorType.REDUCTION
    assert [kind.data for kind in op.get_iterator_types()] == [p, p, r]
    assert next(iter(op.get_default_indexing_maps())) == AffineMap.from_callable(lambda i, j, k: (k, i))
    refused(
        CONTRACT.replace("linalg.contract indexing_maps =", "linalg.contract"), ABO, says="indexing_maps", code="E0301"
    )


def test_maps_of_a_matmul_may_be_others():
    plain = (
        "%r = linalg.matmul ins(%a, %b : tensor<3x4xf32>, "
        "tensor<4x5xf32>) outs(%o : tensor<3x5xf32>) -> tensor<3x5xf32>"
    )
    arguments = "%a: tensor<3x4xf32>, %b: tensor<4x5xf32>, %o: tensor<3x5xf32>"
    assert op_of(MatmulOp, plain, arguments).indexing_maps == MatmulOp.default_maps()
    turned = plain.replace(
        "linalg.matmul",
        """linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>,
      affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]""",
    ).replace("4x5", "5x4")
    op = op_of(MatmulOp, turned, arguments.replace("4x5", "5x4"))
    assert op.indexing_maps != MatmulOp.default_maps()


IMAGES = "conv_2d_nhwc_hwcf", "tensor<1x6x6x2xf32>", "tensor<3x3x2x4xf32>", "tensor<1x4x4x4xf32>"
POOLED = "pooling_nchw_sum", "tensor<1x2x6x6xf32>", "tensor<3x2xf32>", "tensor<1x2x4x5xf32>"
MATRICES = "matmul", "tensor<3x4xf32>", "tensor<4x5xf32>", "tensor<3x5xf32>"
BATCHES = "batch_reduce_matmul", "tensor<2x3x4xf32>", "tensor<2x4x5xf32>", "tensor<3x5xf32>"


@pytest.mark.parametrize("case", [IMAGES, POOLED, MATRICES, BATCHES], ids=lambda case: case[0])
def test_generic_forms_leave_out_what_is_the_default(case: tuple[str, str, str, str]):
    name, a, b, o = case
    text = f"""func.func @main(%a: {a}, %b: {b}, %o: {o}) -> {o} {{
      %r = linalg.{name} ins(%a, %b : {a}, {b}) outs(%o : {o}) -> {o}
      return %r : {o}
    }}"""
    said = parse_module(text, new_context())
    printed = print_module(said, generic=True)
    short = re.sub(r"(strides|dilations|indexing_maps) = (dense<[^>]*> : tensor<[^>]*>|\[.*?\]),? ?", "", printed)
    assert len(short) < len(printed)
    left_out = parse_module(short, new_context())
    arrays = [RNG.standard_normal([int(n) for n in re.findall(r"\d+(?=x)", type_)]).astype("f4") for type_ in (a, b, o)]
    results = [evaluate_function(main_function(module), arrays)[0] for module in (said, left_out)]
    np.testing.assert_array_equal(*results)
    again = parse_module(print_module(left_out), new_context())
    np.testing.assert_array_equal(evaluate_function(main_function(again), arrays)[0], results[0])


# what declarations are made of ----------------------------------------------------------------------------------------


def test_a_specification_is_read():
    loops = read_loops("n ow f / kw c : n ow+kw c, kw c f, , -> n ow f")
    assert (loops.names, loops.parallel) == (("n", "ow", "f", "kw", "c"), 3)
    image, filter_, result = (
        ((0, None), (1, 3), (4, None)),
        ((3, None), (4, None), (2, None)),
        ((0, None), (1, None), (2, None)),
    )
    assert loops.operands == (image, filter_, (), (), result)
    assert [kind is IteratorType.PARALLEL for kind in loops.kinds()] == [True] * 3 + [False] * 2
    assert loops.maps([2], [3])[0] == AffineMap.from_callable(lambda n, w, f, k, c: (n, w * 2 + k * 3, c))


def test_each_window_has_a_stride_and_a_dilation():
    maps = read_loops("oh ow / kh kw : oh+kh ow+kw, kh kw -> oh ow").maps((2, 3), (5, 7))
    assert maps[0] == AffineMap.from_callable(lambda h, w, i, j: (h * 2 + i * 5, w * 3 + j * 7))
    assert maps[1:] == [
        AffineMap.from_callable(lambda h, w, i, j: (i, j)),
        AffineMap.from_callable(lambda h, w, i, j: (h, w)),
    ]


@pytest.mark.parametrize(
    ("source", "target", "unsigned", "name"),
    [
        (f32, f32, False, None),
        (f16, f32, False, "arith.extf"),
        (f64, f32, True, "arith.truncf"),
        (bf16, f64, False, "arith.extf"),
        (f32, i32, False, "arith.fptosi"),
        (f32, i32, True, "arith.fptoui"),
        (i32, f32, False, "arith.sitofp"),
        (i8, f32, True, "arith.uitofp"),
        (i8, i32, False, "arith.extsi"),
        (i8, i32, True, "arith.extui"),
        (i64, i8, False, "arith.trunci"),
        (i64, i8, True, "arith.trunci"),
        (IndexType(), i64, False, "arith.index_cast"),
        (i32, IndexType(), True, "arith.index_cast"),
    ],
)
def test_operands_widen_as_linalg_says(source: Attribute, target: Attribute, unsigned: bool, name: str | None):
    with ImplicitBuilder(Block(arg_types=[source])) as (value,):
        found = cast_to(value, target, unsigned)
    assert found.type == target
    assert found is value if name is None else found.owner.name == name  # pyright: ignore


@pytest.mark.parametrize(
    ("type_", "names"),
    [(f32, ["addf", "mulf"]), (bf16, ["addf", "mulf"]), (i32, ["addi", "muli"]), (i1, ["ori", "andi"])],
)
def test_sums_and_products_by_type(type_: Attribute, names: Sequence[str]):
    with ImplicitBuilder(Block(arg_types=[type_, type_])) as (a, b):
        made = [add(a, b), multiply(a, b)]
    assert [value.owner.name for value in made] == [f"arith.{name}" for name in names]  # pyright: ignore


def test_casts_are_attributes():
    assert TypeFnAttr(TypeFn.CAST_SIGNED) != TypeFnAttr(TypeFn.CAST_UNSIGNED)
    text = (
        "%r = linalg.dot {cast = #linalg.type_fn<cast_unsigned>} ins(%a, %a "
        ": tensor<4xi8>, tensor<4xi8>) outs(%o : tensor<i32>) -> tensor<i32>"
    )
    (dot,) = [op for op in CONTRACTIONS if op.name == "linalg.dot"]
    assert op_of(dot, text, "%a: tensor<4xi8>, %o: tensor<i32>").properties["cast"] == TypeFnAttr(TypeFn.CAST_UNSIGNED)
    refused(text.replace("cast_unsigned", "cast_other"), "%a: tensor<4xi8>, %o: tensor<i32>", says="cast", code="E0301")


def test_an_op_without_a_body_says_so():
    with pytest.raises(TypeError, match="declares no body"):
        DeclaredOp.scalar.__func__(MatmulOp, (), False)  # pyright: ignore
