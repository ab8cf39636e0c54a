"""What is moved out of a tensor that nobody has written is one, of the sizes of what was moved."""

from __future__ import annotations

import pytest
from xdsl.dialects import tensor

from fuseline.ir.context import new_context
from fuseline.passes.cleanup.canonicalize import CanonicalizePass
from fuseline.passes.cleanup.folds import undefined
from tests.unit.passes.cleanup.test_folds import folded, parsed

EMPTY = "%e = tensor.empty(%n) : tensor<?x6x4xf32>\n"
ARGUMENTS = "%n: index, %m: index, %x: tensor<?x6x4xf32>"


def _fold(body: str, result: str, fold: str, source: str = EMPTY) -> tensor.EmptyOp | None:
    """What the fold puts in place of `%r`."""
    (found,) = getattr(undefined, fold)
    made = folded(found, source + body, ARGUMENTS, result)
    assert made is None or isinstance(made, tensor.EmptyOp)
    return made


@pytest.mark.parametrize(
    ("spec", "type_", "sizes"),
    [
        ("[0, 1, 0] [2, 3, 4] [1, 1, 1]", "tensor<2x3x4xf32>", ()),
        ("[%m, 1, 0] [%n, 3, 2] [1, 2, 1]", "tensor<?x3x2xf32>", ("n",)),
        ("[0, 5, 3] [%m, 6, 2] [1, -1, -2]", "tensor<?x6x2xf32>", ("m",)),
        ("[0, 0, 0] [%m, 1, 2] [1, 1, 1]", "tensor<?x2xf32>", ("m",)),
        ("[0, %m, 0] [1, %n, %m] [1, 1, 1]", "tensor<1x?x?xf32>", ("n", "m")),
    ],
)
def test_a_slice(spec: str, type_: str, sizes: tuple[str, ...]):
    made = _fold(f"%r = tensor.extract_slice %e{spec} : tensor<?x6x4xf32> to {type_}", type_, "EXTRACT")
    assert made is not None and tuple(size.name_hint for size in made.dynamic_sizes) == sizes


@pytest.mark.parametrize("spec", ["[0, 4, 0] [2, 3, 4]", "[0, 0, -1] [2, 3, 4]", "[0, 1, 0] [2, 3, 5]"])
def test_a_slice_that_leaves_the_tensor_stays(spec: str):
    type_ = f"tensor<{spec.split('[')[2][:-1].replace(', ', 'x')}xf32>"
    body = f"%r = tensor.extract_slice %e{spec} [1, 1, 1] : tensor<?x6x4xf32> to {type_}"
    assert _fold(body, type_, "EXTRACT") is None


def test_reshapes():
    expand = "%r = tensor.expand_shape %e [[0, 1], [2], [3]] output_shape [%m, 2, 6, 4] : tensor<?x6x4xf32> into "
    made = _fold(f"{expand} tensor<?x2x6x4xf32>", "tensor<?x2x6x4xf32>", "EXPAND")
    assert made is not None and [size.name_hint for size in made.dynamic_sizes] == ["m"]
    collapse = "%r = tensor.collapse_shape %e [[0, 1], [2]] : tensor<?x6x4xf32> into tensor<?x4xf32>"
    made = _fold(collapse, "tensor<?x4xf32>", "COLLAPSE")
    assert made is not None and len(made.dynamic_sizes) == 1
    static = "%e = tensor.empty() : tensor<2x3xi8>\n"
    collapse = "%r = tensor.collapse_shape %e [[0, 1]] : tensor<2x3xi8> into tensor<6xi8>"
    assert _fold(collapse, "tensor<6xi8>", "COLLAPSE", static) is not None


def _copy(maps: str, loops: int, source: str, type_: str, init: str = "%o", body: str = "linalg.yield %a : f32") -> str:
    made = f"%o = tensor.empty({', '.join(['%n'] * type_.count('?'))}) : {type_}\n"
    iterators = ", ".join(['"parallel"'] * loops)
    return (
        f"{made}%r = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{iterators}]}} "
        f"ins({source} : tensor<?x6x4xf32>) outs({init} : {type_}) {{ ^bb0(%a: f32, %b: f32): {body} }} -> {type_}"
    )


TURNED = "affine_map<(a, b, c) -> (b, a, c)>, affine_map<(a, b, c) -> (a, b, c)>"
REPEATED = "affine_map<(a, b, c, d) -> (b, c, d)>, affine_map<(a, b, c, d) -> (a, b, c, d)>"


@pytest.mark.parametrize(
    ("maps", "loops", "type_"), [(TURNED, 3, "tensor<6x?x4xf32>"), (REPEATED, 4, "tensor<3x?x6x4xf32>")]
)
def test_a_copy_is_what_it_would_be_written_to(maps: str, loops: int, type_: str):
    made = _fold(_copy(maps, loops, "%e", type_), type_, "GENERIC")
    assert made is not None and made.tensor.name_hint == "o"


def test_what_is_computed_read_or_given_stays():
    type_ = "tensor<6x?x4xf32>"
    computed = "%z = arith.addf %a, %a : f32\n linalg.yield %z : f32"
    assert _fold(_copy(TURNED, 3, "%e", type_, body=computed), type_, "GENERIC") is None
    assert _fold(_copy(TURNED, 3, "%e", type_, body="linalg.yield %b : f32"), type_, "GENERIC") is None
    assert _fold(_copy(TURNED, 3, "%x", type_), type_, "GENERIC") is None
    given = _copy(TURNED, 3, "%e", type_, init="%y")
    (fold,) = undefined.GENERIC
    assert folded(fold, EMPTY + given, f"{ARGUMENTS}, %y: {type_}", type_) is None


def test_named_moves():
    source = "%e = tensor.empty() : tensor<2x3xf32>\n%o = tensor.empty() : tensor<3x2xf32>\n"
    turn = "%r = linalg.transpose ins(%e : tensor<2x3xf32>) outs(%o : tensor<3x2xf32>) permutation = [1, 0]"
    assert _fold(turn, "tensor<3x2xf32>", "MOVE", source) is not None
    source = source.replace("3x2", "4x2x3")
    spread = "%r = linalg.broadcast ins(%e : tensor<2x3xf32>) outs(%o : tensor<4x2x3xf32>) dimensions = [0]"
    assert _fold(spread, "tensor<4x2x3xf32>", "MOVE", source) is not None
    other = spread.replace("%e", "%x")
    found = folded(undefined.fold_moved_undefined, source + other, "%x: tensor<2x3xf32>", "tensor<4x2x3xf32>")
    assert found is None


def test_a_chain_of_moves_is_gone_altogether():
    body = (
        "%s = tensor.extract_slice %e[0, 2, 0] [%n, 3, 4] [1, 1, 1] : tensor<?x6x4xf32> to tensor<?x3x4xf32>\n"
        "%k = tensor.collapse_shape %s [[0, 1], [2]] : tensor<?x3x4xf32> into tensor<?x4xf32>\n"
        "%o = tensor.empty(%m) : tensor<4x?xf32>\n"
        "%r = linalg.transpose ins(%k : tensor<?x4xf32>) outs(%o : tensor<4x?xf32>) permutation = [1, 0]"
    )
    module, block = parsed(EMPTY + body, ARGUMENTS, "tensor<4x?xf32>")
    CanonicalizePass().apply(new_context(), module)
    end = block.last_op
    assert end is not None
    assert isinstance(end.operands[0].owner, tensor.EmptyOp)
    assert not [op for op in block.ops if isinstance(op, tensor.ExtractSliceOp | tensor.CollapseShapeOp)]
