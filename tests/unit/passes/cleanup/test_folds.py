"""The folds of `canonicalize`, one at a time: what each makes of an op, and what it leaves alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from xdsl.dialects import linalg, tensor
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, BlockArgument, Operation

from fuseline.evaluation import evaluate_module
from fuseline.ir.context import new_context
from fuseline.ir.text import parse_module
from fuseline.passes.cleanup.folds.adjacent_slices import fold_adjacent_slices
from fuseline.passes.cleanup.folds.expansions import EXPANSIONS
from fuseline.passes.cleanup.folds.fills import fold_fill_of_fill, fold_identity_transpose, fold_unread_fill_init
from fuseline.passes.cleanup.folds.generics import fold_copy, fold_repeated_inputs, fold_splat_inputs
from fuseline.passes.cleanup.folds.reshapes import fold_chain, fold_inverse, fold_reshaped_fill, group_sizes, reshape_op
from fuseline.passes.cleanup.folds.reshapes import fold_identity as fold_same_shape
from fuseline.passes.cleanup.folds.scalars import constant_value, fold_identity, fold_scalar_constants, scalar_folds
from fuseline.passes.cleanup.folds.worklist import Fold, Worklist


def parsed(body: str, arguments: str, result: str) -> tuple[ModuleOp, Block]:
    """A function that returns `%r`, and its block."""
    module = parse_module(
        f"func.func @main({arguments}) -> {result} {{ {body}\n return %r : {result} }}", new_context()
    )
    (function,) = (op for op in module.ops if isinstance(op, FuncOp))
    return module, function.body.block


def folded(fold: Fold, body: str, arguments: str, result: str) -> Operation | int | None:
    """What makes `%r` after `fold` on the op that made it: an op, the number of an argument, or None where the fold did
    nothing."""
    _, block = parsed(body, arguments, result)
    end = block.last_op
    assert end is not None
    op = end.operands[0].owner
    assert isinstance(op, Operation)
    if not fold(op, Worklist({})):
        assert end.operands[0].owner is op
        return None
    value = end.operands[0]
    return value.owner if isinstance(value.owner, Operation) else value.index  # pyright: ignore[reportAttributeAccessIssue]


LEFT_OR_RIGHT = [
    *((f"arith.{name}", "i32", number) for name, number in (("addi", "0"), ("muli", "1"), ("ori", "0"), ("xori", "0"))),
    ("arith.addf", "f32", "-0.0"),
    ("arith.mulf", "f32", "1.0"),
]
RIGHT = [
    *((f"arith.{name}", "i32", "0") for name in ("subi", "shli", "shrsi", "shrui")),
    *((f"arith.{name}", "i32", "1") for name in ("divsi", "divui", "floordivsi", "ceildivsi")),
    *(("arith.subf", "f32", "0.0"), ("arith.divf", "f32", "1.0"), ("math.powf", "f32", "1.0")),
]


def _with_constant(name: str, type_: str, number: str, order: str) -> Operation | int | None:
    return folded(
        fold_identity,
        f"%c = arith.constant {number} : {type_}\n %r = {name} {order} : {type_}",
        f"%y: {type_}, %x: {type_}",
        type_,
    )


@pytest.mark.parametrize(("name", "type_", "number"), [*LEFT_OR_RIGHT, *RIGHT])
def test_what_a_neutral_number_changes_is_nothing(name: str, type_: str, number: str):
    assert _with_constant(name, type_, number, "%x, %c") == 1
    other = {"0": "2", "1": "2", "-0.0": "0.0", "0.0": "-0.0", "1.0": "-1.0"}[number]
    assert _with_constant(name, type_, other, "%x, %c") is None
    assert _with_constant(name, type_, number, "%x, %y") is None
    turned = _with_constant(name, type_, number, "%c, %x")
    assert turned == (1 if (name, type_, number) in LEFT_OR_RIGHT else None)


@pytest.mark.parametrize(
    ("name", "type_"),
    [(f"arith.{name}", "i32") for name in ("ori", "andi", "maxsi", "minsi", "maxui", "minui")]
    + [(f"arith.{name}", "f32") for name in ("maximumf", "minimumf", "maxnumf", "minnumf")],
)
def test_a_value_and_itself(name: str, type_: str):
    assert folded(fold_identity, f"%r = {name} %x, %x : {type_}", f"%y: {type_}, %x: {type_}", type_) == 1
    assert folded(fold_identity, f"%r = {name} %x, %y : {type_}", f"%y: {type_}, %x: {type_}", type_) is None


@pytest.mark.parametrize(("condition", "choice"), [("true", 0), ("false", 1)])
def test_choices_that_are_known(condition: str, choice: int):
    body = f"%c = arith.constant {condition}\n %r = arith.select %c, %a, %b : f32"
    assert folded(fold_identity, body, "%a: f32, %b: f32", "f32") == choice
    assert folded(fold_identity, "%r = arith.select %c, %a, %a : f32", "%c: i1, %a: f32", "f32") == 1
    assert folded(fold_identity, "%r = arith.select %c, %a, %b : f32", "%c: i1, %a: f32, %b: f32", "f32") is None


@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [
        ("arith.index_cast %x : i32 to index", "arith.index_cast %m : index to i32", True),
        ("arith.index_cast %x : i32 to index", "arith.index_cast %m : index to i64", False),
        ("arith.index_cast %x : index to i64", "arith.index_cast %m : i64 to index", True),
        ("arith.index_cast %x : index to i32", "arith.index_cast %m : i32 to index", False),
        ("arith.negf %x : f32", "arith.negf %m : f32", True),
        ("math.absf %x : f32", "arith.negf %m : f32", False),
    ],
)
def test_there_and_back(first: str, second: str, kept: bool):
    source, result = first.split(" : ")[1].split(" to ")[0], second.rsplit(" to ")[-1].rsplit(" : ")[-1]
    assert folded(fold_identity, f"%m = {first}\n %r = {second}", f"%x: {source}", result) == (0 if kept else None)


@pytest.mark.parametrize(
    ("op", "type_", "numbers", "expected"),
    [
        ("arith.addi %a, %b", "i8", (127, 1), -128),
        ("arith.floordivsi %a, %b", "i32", (-7, 2), -4),
        ("arith.divsi %a, %b", "i32", (-7, 2), -3),
        ("arith.mulf %a, %b", "f32", (1.5, -2.0), -3.0),
        ("arith.subi %a, %a", "index", (5, 0), 0),
        ("arith.divsi %a, %b", "i32", (5, 0), None),
        ("arith.remui %a, %b", "i32", (5, 0), None),
        ("arith.ceildivui %a, %b", "i32", (5, 0), None),
    ],
)
def test_arithmetic_on_constants(op: str, type_: str, numbers: tuple[float, float], expected: float | None):
    constants = "".join(
        f"%{name} = arith.constant {number} : {type_}\n" for name, number in zip("ab", numbers, strict=True)
    )
    made = folded(fold_scalar_constants, f"{constants} %r = {op} : {type_}", "", type_)
    assert (
        made is None
        if expected is None
        else isinstance(made, Operation) and constant_value(made.results[0]) == expected
    )


def test_arithmetic_on_what_is_given_stays():
    assert (
        folded(fold_scalar_constants, "%a = arith.constant 3 : i32\n %r = arith.addi %a, %x : i32", "%x: i32", "i32")
        is None
    )


@pytest.mark.parametrize(
    ("op", "argument", "result"),
    [
        ("math.isnan %x : f32", "f32", "i1"),
        ("math.isinf %x : f32", "f32", "i1"),
        ("math.isfinite %x : f32", "f32", "i1"),
        ("arith.index_castui %x : i8 to index", "i8", "index"),
        ("arith.index_castui %x : index to i64", "index", "i64"),
    ],
)
def test_ops_said_by_others_mean_the_same(op: str, argument: str, result: str):
    values = (
        [np.float32(v) for v in (1.5, -np.inf, np.inf, np.nan, -0.0)]
        if argument == "f32"
        else [np.int64(v) for v in (3, 120)]
    )
    values = [np.int8(-7), np.int8(7)] if argument == "i8" else values
    module, block = parsed(f"%r = {op}", f"%x: {argument}", result)
    first = block.first_op
    assert first is not None and EXPANSIONS[type(first)](first, Worklist({}))
    module.verify()
    assert type(first) in scalar_folds() and first.parent is None
    meaning = {"math.isnan": np.isnan, "math.isinf": np.isinf, "math.isfinite": np.isfinite}
    for value in values:
        expected = (
            meaning[op.split()[0]](value) if argument == "f32" else int(value) % (256 if argument == "i8" else 2**64)
        )
        assert evaluate_module(module, [value])[0] == expected


def test_a_clamp_is_a_minimum_of_a_maximum():
    module, block = parsed("%r = math.clampf %x to [%a, %b] : f32", "%x: f32, %a: f32, %b: f32", "f32")
    first = block.first_op
    assert first is not None and EXPANSIONS[type(first)](first, Worklist({}))
    for value, expected in ((-3.0, -1.0), (0.5, 0.5), (9.0, 2.0)):
        assert evaluate_module(module, [np.float32(value), np.float32(-1), np.float32(2)])[0] == expected


def _slices(first: str, second: str, steps: str = "1, 1") -> Operation | int | None:
    def one(name: str, spec: str) -> tuple[str, str]:
        offsets, sizes = spec.split(" / ")
        type_ = f"tensor<{sizes.replace(', ', 'x')}xf32>"
        return f"%{name} = tensor.extract_slice %x[{offsets}] [{sizes}] [{steps}] : tensor<9x8xf32> to {type_}\n", type_

    (a, at), (b, bt) = one("a", first), one("b", second)
    rows, columns = (int(n) for n in first.split(" / ")[1].split(", "))
    more = int(second.split(" / ")[1].split(", ")[1])
    result = f"tensor<{rows}x{columns + more}xf32>"
    return folded(
        fold_adjacent_slices,
        f"{a}{b}%r = tensor.concat dim(1) %a, %b : ({at}, {bt}) -> {result}",
        "%x: tensor<9x8xf32>",
        result,
    )


def test_slices_that_continue_each_other_are_one():
    made = _slices("2, 1 / 4, 3", "2, 4 / 4, 2")
    assert isinstance(made, tensor.ConcatOp)
    (part,) = made.inputs
    assert isinstance(part.owner, tensor.ExtractSliceOp)
    values = (part.owner.static_offsets, part.owner.static_sizes, part.owner.static_strides)
    assert [tuple(value.get_values()) for value in values] == [(2, 1), (4, 5), (1, 1)]


@pytest.mark.parametrize(
    ("first", "second", "steps"),
    [
        ("2, 1 / 4, 3", "2, 5 / 4, 2", "1, 1"),
        ("2, 1 / 4, 3", "2, 3 / 4, 2", "1, 1"),
        ("2, 1 / 4, 3", "3, 4 / 4, 2", "1, 1"),
        ("0, 0 / 3, 2", "0, 2 / 3, 2", "1, 2"),
    ],
    ids=["a gap", "an overlap", "other rows", "every other column"],
)
def test_other_slices_stay(first: str, second: str, steps: str):
    assert _slices(first, second, steps) is None


def test_every_other_row_continues_all_the_same():
    assert isinstance(_slices("0, 1 / 4, 3", "0, 4 / 4, 2", "2, 1"), tensor.ConcatOp)


@pytest.mark.parametrize(
    ("large", "small", "groups"),
    [
        ((2, 3, 4), (6, 4), [[0, 1], [2]]),
        ((2, 3, 4), (2, 12), [[0], [1, 2]]),
        ((4, 1, 6), (4, 6), [[0, 1], [2]]),
        ((4, 1, 6), (4, 1, 6), [[0], [1], [2]]),
        ((4, 1, 1, 6), (4, 1, 6), [[0], [1, 2], [3]]),
        ((1, 4, 1), (4,), [[0, 1, 2]]),
        ((1, 1), (), []),
        ((2, 1), (), None),
        ((4, 6), (8, 3), None),
        ((0, 4), (0,), None),
        ((2, 3), (6, 1), None),
        ((2, 3, 5), (6,), None),
    ],
)
def test_groups_of_dimensions(large: Sequence[int], small: Sequence[int], groups: list[list[int]] | None):
    assert group_sizes(large, small) == groups


@pytest.mark.parametrize(
    ("shape", "kind"),
    [((6, 4), tensor.CollapseShapeOp), ((2, 3, 2, 2), tensor.ExpandShapeOp), ((4, 6), None), ((2, 3, 4), None)],
)
def test_one_op_of_another_shape(shape: tuple[int, ...], kind: type[Operation] | None):
    _, block = parsed("%r = tensor.empty() : tensor<1xf32>", "%x: tensor<2x3x4xf32>", "tensor<1xf32>")
    made = reshape_op(block.args[0], shape)
    assert made is None if kind is None else type(made) is kind
    if made is not None:
        made.verify()
        assert isinstance(made.result.type, TensorType) and made.result.type.get_shape() == shape


@pytest.mark.parametrize(("inner", "kept"), [("4", True), ("?", False)])
def test_a_reshape_undone_where_its_sizes_follow(inner: str, kept: bool):
    type_ = f"tensor<?x{inner}xf32>"
    sizes = "%n, 4" if inner == "4" else "%n, %n"
    body = f"""%m = tensor.collapse_shape %x [[0, 1]] : {type_} into tensor<?xf32>
      %r = tensor.expand_shape %m [[0, 1]] output_shape [{sizes}] : tensor<?xf32> into {type_}"""
    assert folded(fold_inverse, body, f"%x: {type_}, %n: index", type_) == (0 if kept else None)


def test_a_reshape_that_undoes_another_one_only():
    body = """%m = tensor.collapse_shape %x [[0, 1], [2]] : tensor<2x3x4xf32> into tensor<6x4xf32>
      %r = tensor.expand_shape %m [[0], [1, 2]] output_shape [6, 2, 2] : tensor<6x4xf32> into tensor<6x2x2xf32>"""
    assert folded(fold_inverse, body, "%x: tensor<2x3x4xf32>", "tensor<6x2x2xf32>") is None


def test_two_reshapes_of_known_sizes_are_one():
    body = """%m = tensor.collapse_shape %x [[0, 1], [2]] : tensor<2x3x4xf32> into tensor<6x4xf32>
      %r = tensor.collapse_shape %m [[0, 1]] : tensor<6x4xf32> into tensor<24xf32>"""
    made = folded(fold_chain, body, "%x: tensor<2x3x4xf32>", "tensor<24xf32>")
    assert isinstance(made, tensor.CollapseShapeOp) and isinstance(made.src, BlockArgument)
    assert folded(fold_chain, body.split("\n")[1].replace("%m", "%x"), "%x: tensor<6x4xf32>", "tensor<24xf32>") is None
    unknown = body.replace("2x3x4", "?x3x4").replace("6x4", "?x4").replace("24x", "?x")
    assert folded(fold_chain, unknown, "%x: tensor<?x3x4xf32>", "tensor<?xf32>") is None


def test_reshapes_to_the_same_type_are_none():
    body = "%r = tensor.expand_shape %x [[0], [1]] output_shape [4, 8] : tensor<4x8xf32> into tensor<4x8xf32>"
    assert folded(fold_same_shape, body, "%x: tensor<4x8xf32>", "tensor<4x8xf32>") == 0
    other = "%r = tensor.expand_shape %x [[0], [1, 2]] output_shape [4, 8, 1] : tensor<4x8xf32> into tensor<4x8x1xf32>"
    assert folded(fold_same_shape, other, "%x: tensor<4x8xf32>", "tensor<4x8x1xf32>") is None


def test_a_reshape_of_one_number_fills_the_new_shape():
    shape = "%r = tensor.collapse_shape %m [[0, 1]] : tensor<2x3xf32> into tensor<6xf32>"
    fill = "%m = linalg.fill ins(%v : f32) outs(%x : tensor<2x3xf32>) -> tensor<2x3xf32>\n"
    made = folded(fold_reshaped_fill, fill + shape, "%v: f32, %x: tensor<2x3xf32>", "tensor<6xf32>")
    assert (
        isinstance(made, linalg.ops.FillOp)
        and made.inputs[0].owner is not made
        and isinstance(made.outputs[0].owner, tensor.EmptyOp)
    )
    assert folded(fold_reshaped_fill, shape.replace("%m", "%x"), "%x: tensor<2x3xf32>", "tensor<6xf32>") is None
    unknown = fill.replace("2x3", "?x3") + shape.replace("2x3", "?x3").replace("tensor<6x", "tensor<?x")
    assert folded(fold_reshaped_fill, unknown, "%v: f32, %x: tensor<?x3xf32>", "tensor<?xf32>") is None


def test_fills():
    inner = "%m = linalg.fill ins(%a : f32) outs(%x : tensor<4xf32>) -> tensor<4xf32>\n"
    outer = "%r = linalg.fill ins(%b : f32) outs(%m : tensor<4xf32>) -> tensor<4xf32>"
    arguments = "%a: f32, %b: f32, %x: tensor<4xf32>"
    made = folded(fold_fill_of_fill, inner + outer, arguments, "tensor<4xf32>")
    assert isinstance(made, linalg.ops.FillOp) and made.outputs[0].name_hint == "x"
    assert folded(fold_fill_of_fill, outer.replace("%m", "%x"), arguments, "tensor<4xf32>") is None
    again = folded(fold_unread_fill_init, outer.replace("%m", "%x"), arguments, "tensor<4xf32>")
    assert isinstance(again, linalg.ops.FillOp) and isinstance(again.outputs[0].owner, tensor.EmptyOp)


@pytest.mark.parametrize(("order", "kept"), [("[0, 1]", True), ("[1, 0]", False)])
def test_a_transpose_that_moves_nothing(order: str, kept: bool):
    body = (
        f"%e = tensor.empty() : tensor<3x3xf32>\n%r = linalg.transpose ins(%x : tensor<3x3xf32>) outs(%e : "
        f"tensor<3x3xf32>) permutation = {order}"
    )
    assert folded(fold_identity_transpose, body, "%x: tensor<3x3xf32>", "tensor<3x3xf32>") == (0 if kept else None)


COPY = """%r = linalg.generic {{
  indexing_maps = [affine_map<(i, j) -> ({0})>, affine_map<(i, j) -> ({1})>],
      iterator_types = ["parallel", "parallel"]}}
  ins(%x : tensor<3x3xf32>) outs(%e : tensor<3x3xf32>) {{
^bb0(%a: f32, %o: f32):
  linalg.yield %{2} : f32
}} -> tensor<3x3xf32>"""


@pytest.mark.parametrize(
    ("read", "written", "value", "kept"),
    [
        ("i, j", "i, j", "a", True),
        ("j, i", "j, i", "a", True),
        ("j, i", "i, j", "a", False),
        ("i, j", "i, j", "z", False),
    ],
)
def test_copies(read: str, written: str, value: str, kept: bool):
    arguments = "%x: tensor<3x3xf32>, %e: tensor<3x3xf32>, %z: f32"
    assert folded(fold_copy, COPY.format(read, written, value), arguments, "tensor<3x3xf32>") == (0 if kept else None)


PRODUCT = """%c = arith.constant dense<2.0> : tensor<3x3xf32>
%r = linalg.generic {{indexing_maps = [{0}], iterator_types = ["parallel", "parallel", "{1}"]}}
  ins(%x, %c : tensor<3x3xf32>, tensor<3x3xf32>) outs(%x : tensor<3x3xf32>) {{
^bb0(%a: f32, %b: f32, %o: f32):
  %m = arith.mulf %a, %b : f32
  %s = arith.addf %o, %m : f32
  linalg.yield %s : f32
}} -> tensor<3x3xf32>"""
MATMUL = ", ".join(f"affine_map<(m, n, k) -> ({results})>" for results in ("m, k", "k, n", "m, n"))


def test_one_number_everywhere_is_a_scalar_but_in_a_contraction():
    assert (
        folded(fold_splat_inputs, PRODUCT.format(MATMUL, "reduction"), "%x: tensor<3x3xf32>", "tensor<3x3xf32>") is None
    )
    summed = PRODUCT.format(MATMUL.replace("(k, n)", "(m, n)"), "reduction")
    made = folded(fold_splat_inputs, summed, "%x: tensor<3x3xf32>", "tensor<3x3xf32>")
    assert isinstance(made, linalg.ops.GenericOp)
    product = made.body.block.first_op
    assert product is not None and constant_value(product.operands[1]) == 2.0


@pytest.mark.parametrize(
    ("second", "map_", "expected"), [("%x", "(d0, d1)", True), ("%x", "(d1, d0)", False), ("%y", "(d0, d1)", False)]
)
def test_a_tensor_read_twice_alike_is_read_once(second: str, map_: str, expected: bool) -> None:
    """What reads it changes as well, so that the folds look at it again."""
    body = f"""%r = linalg.generic {{indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> {map_}>,
        affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]}}
        ins(%x, {second} : tensor<4x4xf32>, tensor<4x4xf32>) outs(%y : tensor<4x4xf32>) {{
      ^bb0(%p: f32, %q: f32, %out: f32):
        %s = arith.subf %p, %q : f32
        linalg.yield %s : f32
      }} -> tensor<4x4xf32>"""
    module, _ = parsed(body, "%x: tensor<4x4xf32>, %y: tensor<4x4xf32>", "tensor<4x4xf32>")
    (op,) = [op for op in module.walk() if isinstance(op, linalg.ops.GenericOp)]
    work = Worklist({})
    assert fold_repeated_inputs(op, work) == expected
    first = op.body.block.first_op
    assert first is not None and (first.operands[0] is first.operands[1]) == expected
    assert not fold_repeated_inputs(op, work)


@pytest.mark.parametrize("type_", ["f16", "bf16", "f32", "f64"])
def test_numbers_of_every_float_type_are_computed(type_: str) -> None:
    body = f"%a = arith.constant 1.5 : {type_}\n %b = arith.constant 2.25 : {type_}\n %r = arith.addf %a, %b : {type_}"
    made = folded(fold_scalar_constants, body, "", type_)
    assert isinstance(made, Operation) and constant_value(made.results[0]) == 3.75
