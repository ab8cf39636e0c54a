"""Ops of StableHLO that move, combine and reduce, against NumPy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.draws import RNG
from tests.unit.frontends.stablehlo.programs import program, refused, run

Array = NDArray[Any]


def _x(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


def test_axes_are_called_otherwise(tmp_path: Path):
    x = _x(2, 3, 4)
    lines = """    %a = stablehlo.transpose %x, dims = [2, 0, 1] : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
    %b = stablehlo.reshape %x : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
    %c = stablehlo.reverse %x, dims = [0, 2] : tensor<2x3x4xf32>
    %d = stablehlo.slice %x [0:2, 1:3, 0:4:3] : (tensor<2x3x4xf32>) -> tensor<2x2x2xf32>
    %e = stablehlo.concatenate %x, %c, dim = 1 : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x6x4xf32>
    %s = stablehlo.slice %x [0:1, 0:1, 0:4] : (tensor<2x3x4xf32>) -> tensor<1x1x4xf32>
    %t = stablehlo.reshape %s : (tensor<1x1x4xf32>) -> tensor<4x1xf32>
    %f = stablehlo.broadcast_in_dim %t, dims = [2, 0] : (tensor<4x1xf32>) -> tensor<3x2x4xf32>
    %i = stablehlo.iota dim = 1 : tensor<2x70xi32>"""
    types = (
        "tensor<4x2x3xf32>, tensor<6x4xf32>, tensor<2x3x4xf32>, tensor<2x2x2xf32>, tensor<2x6x4xf32>, "
        "tensor<3x2x4xf32>, tensor<2x70xi32>"
    )
    found = run(program(lines, "%x: tensor<2x3x4xf32>", types, "%a, %b, %c, %d, %e, %f, %i"), tmp_path, x)
    turned = x[::-1, :, ::-1]
    want = [
        x.transpose(2, 0, 1),
        x.reshape(6, 4),
        turned,
        x[:, 1:3, ::3],
        np.concatenate([x, turned], 1),
        np.broadcast_to(x[0, 0], (3, 2, 4)),
        np.broadcast_to(np.arange(70, dtype=np.int32), (2, 70)),
    ]
    for got, expected in zip(found, want, strict=True):
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(
    ("low", "high", "between"), [((1, 0), (2, 3), (0, 0)), ((0, 1), (1, 0), (2, 1)), ((-1, 1), (1, -2), (1, 0))]
)
def test_padding_around_between_and_off(
    low: tuple[int, int], high: tuple[int, int], between: tuple[int, int], tmp_path: Path
):
    x, value = _x(3, 4), np.float32(7)
    spread = np.full([n + (n - 1) * b for n, b in zip(x.shape, between, strict=True)], value)
    spread[:: between[0] + 1, :: between[1] + 1] = x
    want = np.pad(spread, [(max(a, 0), max(b, 0)) for a, b in zip(low, high, strict=True)], constant_values=value)
    want = want[tuple(slice(max(-a, 0), n - max(-b, 0)) for a, b, n in zip(low, high, want.shape, strict=True))]
    out = f"tensor<{want.shape[0]}x{want.shape[1]}xf32>"
    settings = f"low = {list(low)}, high = {list(high)}, interior = {list(between)}"
    line = f"    %r = stablehlo.pad %x, %v, {settings} : (tensor<3x4xf32>, tensor<f32>) -> {out}"
    known = f"    %v = stablehlo.constant dense<7.0> : tensor<f32>\n{line}"
    (found,) = run(program(known, "%x: tensor<3x4xf32>", out, "%r"), tmp_path, x)
    np.testing.assert_array_equal(found, want)
    (found,) = run(program(line, "%x: tensor<3x4xf32>, %v: tensor<f32>", out, "%r"), tmp_path, x, np.array(value))
    np.testing.assert_array_equal(found, want)


def test_products_with_batch_and_several_contracted_axes(tmp_path: Path):
    x, y = _x(2, 3, 4, 5), _x(5, 2, 6, 3)
    line = (
        "    %r = stablehlo.dot_general %x, %y, batching_dims = [0] x [1], contracting_dims = [3, 1] x [0, 3], "
        "precision = [DEFAULT, HIGHEST] : (tensor<2x3x4x5xf32>, tensor<5x2x6x3xf32>) -> tensor<2x4x6xf32>"
    )
    text = program(line, "%x: tensor<2x3x4x5xf32>, %y: tensor<5x2x6x3xf32>", "tensor<2x4x6xf32>", "%r")
    (found,) = run(text, tmp_path, x, y)
    np.testing.assert_allclose(found, np.einsum("bkmc,cbnk->bmn", x, y), rtol=1e-4, atol=1e-5)


def test_a_product_in_the_generic_form(tmp_path: Path):
    x, y = RNG.integers(-9, 9, (3, 4)).astype(np.int8), RNG.integers(-9, 9, (4, 5)).astype(np.int8)
    line = (
        '    %r = "stablehlo.dot_general"(%x, %y) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions '
        "= [1], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, "
        "#stablehlo<precision DEFAULT>]}> : (tensor<3x4xi8>, tensor<4x5xi8>) -> tensor<3x5xi32>"
    )
    (found,) = run(program(line, "%x: tensor<3x4xi8>, %y: tensor<4x5xi8>", "tensor<3x5xi32>", "%r"), tmp_path, x, y)
    np.testing.assert_array_equal(found, x.astype(np.int32) @ y.astype(np.int32))


def _convolved(
    x: Array, w: Array, stride: int, pads: tuple[int, int], spread: int, dilation: int, groups: int
) -> Array:
    """`[n, h, c]` with `[k, c / groups, o]`, in one spatial axis."""
    wide = np.zeros((x.shape[0], (x.shape[1] - 1) * spread + 1, x.shape[2]), x.dtype)
    wide[:, ::spread] = x
    image = np.pad(wide, [(0, 0), pads, (0, 0)])
    span = (w.shape[0] - 1) * dilation + 1
    out = []
    for start in range(0, image.shape[1] - span + 1, stride):
        taps = image[:, start : start + span : dilation]
        share, each = w.shape[1], w.shape[2] // groups
        parts = [
            np.einsum("nkc,kco->no", taps[..., g * share : (g + 1) * share], w[..., g * each : (g + 1) * each])
            for g in range(groups)
        ]
        out.append(np.concatenate(parts, 1))
    return np.stack(out, 1)


@pytest.mark.parametrize(
    ("stride", "pads", "spread", "dilation", "groups", "turned"),
    [
        (1, (0, 0), 1, 1, 1, False),
        (2, (1, 2), 1, 2, 2, True),
        (1, (2, 1), 3, 1, 1, False),
        (1, (1, 1), 1, 1, 4, False),
        (2, (3, 0), 2, 1, 2, False),
        (1, (-1, 0), 1, 1, 1, False),
    ],
)
def test_convolutions_in_another_layout(
    stride: int, pads: tuple[int, int], spread: int, dilation: int, groups: int, turned: bool, tmp_path: Path
):
    x, w = _x(2, 9, 4), _x(3, 4 // groups, 4)
    cut = x[:, -min(pads[0], 0) :]
    want = _convolved(cut, w[::-1] if turned else w, stride, (max(pads[0], 0), pads[1]), spread, dilation, groups)
    window = f"stride = [{stride}], pad = [[{pads[0]}, {pads[1]}]], lhs_dilate = [{spread}], rhs_dilate = [{dilation}]"
    window += f", reverse = [{str(turned).lower()}]"
    # the image as features, space, batch; the filter as output, space, input; the result as space, batch, features
    out = f"tensor<{want.shape[1]}x2x4xf32>"
    line = (
        "    %r = stablehlo.convolution(%x, %w) dim_numbers = [f, 0, b]x[o, 0, i]->[0, b, f], "
        f"window = {{{window}}} {{batch_group_count = 1 : i64, feature_group_count = {groups} : i64}} : "
        f"(tensor<4x9x2xf32>, tensor<4x3x{4 // groups}xf32>) -> {out}"
    )
    text = program(line, f"%x: tensor<4x9x2xf32>, %w: tensor<4x3x{4 // groups}xf32>", out, "%r")
    feeds = np.ascontiguousarray(x.transpose(2, 1, 0)), np.ascontiguousarray(w.transpose(2, 0, 1))
    (found,) = run(text, tmp_path, *feeds, tolerance=1e-4)
    np.testing.assert_allclose(found.transpose(1, 0, 2), want, rtol=1e-4, atol=1e-4)


def test_reductions_by_one_op_and_by_a_region(tmp_path: Path):
    x = _x(3, 4, 5)
    lines = """    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %m = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %n = stablehlo.constant dense<0> : tensor<i32>
    %i = stablehlo.iota dim = 1 : tensor<3x4x5xi32>
    %a = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0, 2]
        : (tensor<3x4x5xf32>, tensor<f32>) -> tensor<4xf32>
    %b:2 = stablehlo.reduce(%x init: %m), (%i init: %n) across dimensions = [1]
        : (tensor<3x4x5xf32>, tensor<3x4x5xi32>, tensor<f32>, tensor<i32>) -> (tensor<3x5xf32>, tensor<3x5xi32>)
     reducer(%p: tensor<f32>, %q: tensor<f32>) (%r: tensor<i32>, %s: tensor<i32>)  {
      %g = stablehlo.compare GE, %p, %q, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %v = stablehlo.select %g, %p, %q : tensor<i1>, tensor<f32>
      %w = stablehlo.select %g, %r, %s : tensor<i1>, tensor<i32>
      stablehlo.return %v, %w : tensor<f32>, tensor<i32>
    }
    %c = "stablehlo.reduce"(%x, %y) <{dimensions = array<i64: 2>}> ({
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %k = stablehlo.abs %q : tensor<f32>
      %l = stablehlo.maximum %p, %k : tensor<f32>
      stablehlo.return %l : tensor<f32>
    }) : (tensor<3x4x5xf32>, tensor<f32>) -> tensor<3x4xf32>"""
    types = "tensor<4xf32>, tensor<3x5xf32>, tensor<3x5xi32>, tensor<3x4xf32>"
    text = program(lines, "%x: tensor<3x4x5xf32>, %y: tensor<f32>", types, "%a, %b#0, %b#1, %c")
    total, best, where, size = run(text, tmp_path, x, np.array(0.5, np.float32))
    np.testing.assert_allclose(total, x.sum((0, 2)), rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(best, x.max(1))
    np.testing.assert_array_equal(where, x.argmax(1))
    np.testing.assert_allclose(size, np.maximum(np.abs(x).max(2), 0.5))


def test_windows_and_running_totals(tmp_path: Path):
    x = _x(2, 8, 3)
    region = "({\n    ^bb0(%p: tensor<f32>, %q: tensor<f32>):\n      %s = stablehlo.{op} %p, %q : tensor<f32>\n"
    region += "      stablehlo.return %s : tensor<f32>\n    })"
    lines = (
        "    %z = stablehlo.constant dense<0.0> : tensor<f32>\n"
        "    %m = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
        '    %a = "stablehlo.reduce_window"(%x, %m) <{padding = dense<[[0, 0], [1, 0], [0, 0]]> : tensor<3x2xi64>, '
        "window_dimensions = array<i64: 1, 3, 1>, window_strides = array<i64: 1, 2, 1>}> "
        f"{region.replace('{op}', 'maximum')} : (tensor<2x8x3xf32>, tensor<f32>) -> tensor<2x4x3xf32>\n"
        '    %b = "stablehlo.reduce_window"(%x, %z) <{padding = dense<[[0, 0], [7, 0], [0, 0]]> : tensor<3x2xi64>, '
        f"window_dimensions = array<i64: 1, 8, 1>}}> {region.replace('{op}', 'add')} : "
        "(tensor<2x8x3xf32>, tensor<f32>) -> tensor<2x8x3xf32>"
    )
    text = program(lines, "%x: tensor<2x8x3xf32>", "tensor<2x4x3xf32>, tensor<2x8x3xf32>", "%a, %b")
    pooled, totals = run(text, tmp_path, x)
    padded = np.pad(x, [(0, 0), (1, 0), (0, 0)], constant_values=-np.inf)
    want = np.stack([padded[:, i : i + 3].max(1) for i in range(0, 7, 2)], 1)
    np.testing.assert_array_equal(pooled, want)
    np.testing.assert_allclose(totals, np.cumsum(x, 1), rtol=1e-5, atol=1e-5)


def test_gather_moves_starts_inside(tmp_path: Path):
    x, at = _x(5, 4), np.array([[1, 0], [9, 2], [-3, 1]], np.int32)
    line = (
        '    %r = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], '
        "collapsed_slice_dims = [0], start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 2>}> "
        ": (tensor<5x4xf32>, tensor<3x2xi32>) -> tensor<3x2xf32>"
    )
    (found,) = run(program(line, "%x: tensor<5x4xf32>, %i: tensor<3x2xi32>", "tensor<3x2xf32>", "%r"), tmp_path, x, at)
    rows = [(min(max(r, 0), 4), min(max(c, 0), 2)) for r, c in at.tolist()]
    np.testing.assert_array_equal(found, np.stack([x[r, c : c + 2] for r, c in rows]))


@pytest.mark.parametrize("op", ["return", "add", "multiply", "maximum", "minimum"])
@pytest.mark.parametrize("known", [False, True])
def test_scatter_leaves_out_what_does_not_fit(op: str, known: bool, tmp_path: Path):
    x, updates = _x(6, 4), _x(3, 2, 4)
    at = np.array([0, 3, 5], np.int32)  # the last window of two rows does not fit
    body = "%q" if op == "return" else "%s"
    made = "" if op == "return" else f"      %s = stablehlo.{op} %p, %q : tensor<f32>\n"
    line = (
        '    %r = "stablehlo.scatter"(%x, %i, %u) <{indices_are_sorted = true, scatter_dimension_numbers = '
        "#stablehlo.scatter<update_window_dims = [1, 2], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> "
        f"({{\n    ^bb0(%p: tensor<f32>, %q: tensor<f32>):\n{made}      stablehlo.return {body} : tensor<f32>\n    "
        "}) : "
        "(tensor<6x4xf32>, tensor<3xi32>, tensor<3x2x4xf32>) -> tensor<6x4xf32>"
    )
    arguments, feeds = "%x: tensor<6x4xf32>, %u: tensor<3x2x4xf32>", [x, updates]
    if known:
        line = f"    %i = stablehlo.constant dense<[0, 3, 5]> : tensor<3xi32>\n{line}"
    else:
        arguments, feeds = f"{arguments}, %i: tensor<3xi32>", [*feeds, at]
    (found,) = run(program(line, arguments, "tensor<6x4xf32>", "%r"), tmp_path, *feeds)
    want = x.copy()
    functions = {"add": np.add, "multiply": np.multiply, "maximum": np.maximum, "minimum": np.minimum}
    for start, rows in zip(at[:2], updates[:2], strict=True):
        old = want[start : start + 2]
        want[start : start + 2] = rows if op == "return" else functions[op](old, rows)
    np.testing.assert_allclose(found, want, rtol=1e-5)


@pytest.mark.parametrize("start", [(1, 0), (-4, 9)])
def test_boxes_are_moved_inside(start: tuple[int, int], tmp_path: Path):
    x, box = _x(5, 4), _x(2, 3)
    types = "(tensor<5x4xf32>, tensor<2x3xf32>, tensor<i32>, tensor<i32>) -> tensor<5x4xf32>"
    lines = f"""    %a = stablehlo.dynamic_slice %x, %i, %j, sizes = [2, 3] :
        (tensor<5x4xf32>, tensor<i32>, tensor<i32>) -> tensor<2x3xf32>
    %b = stablehlo.dynamic_update_slice %x, %u, %i, %j : {types}"""
    arguments = "%x: tensor<5x4xf32>, %u: tensor<2x3xf32>, %i: tensor<i32>, %j: tensor<i32>"
    places = [np.array(number, np.int32) for number in start]
    cut, changed = run(
        program(lines, arguments, "tensor<2x3xf32>, tensor<5x4xf32>", "%a, %b"), tmp_path, x, box, *places
    )
    r, c = min(max(start[0], 0), 3), min(max(start[1], 0), 1)
    want = x.copy()
    want[r : r + 2, c : c + 3] = box
    np.testing.assert_array_equal(cut, x[r : r + 2, c : c + 3])
    np.testing.assert_array_equal(changed, want)


def _sorted(region: str, operands: int) -> str:
    names = ", ".join(f"%{name}" for name in "xy"[:operands])
    types = ", ".join(["tensor<3x9xf32>"] * operands)
    arguments = ", ".join(f"%{name}{i}: tensor<f32>" for name in "xy"[:operands] for i in range(2))
    results = f"({types})" if operands > 1 else types
    line = (
        f'    %r:{operands} = "stablehlo.sort"({names}) <{{dimension = 1 : i64, is_stable = true}}> ({{\n'
        f"    ^bb0({arguments}):\n{region}\n    }}) : ({types}) -> {results}"
    )
    given = ", ".join(f"%{name}: tensor<3x9xf32>" for name in "xy"[:operands])
    return program(line, given, types, ", ".join(f"%r#{i}" for i in range(operands)))


def _less(a: str, b: str, name: str, word: str = "LT") -> str:
    types = "(tensor<f32>, tensor<f32>) -> tensor<i1>"
    return f"      %{name} = stablehlo.compare {word}, {a}, {b}, TOTALORDER : {types}\n"


def test_sorting_by_one_key_by_two_and_by_anything(tmp_path: Path):
    x, y = RNG.integers(0, 3, (3, 9)).astype(np.float32), _x(3, 9)
    end = "      stablehlo.return %k : tensor<i1>"
    down = _sorted(_less("%x0", "%x1", "k", "GT") + end, 2)
    order = np.argsort(-x, 1, kind="stable")
    found = run(down, tmp_path, x, y)
    np.testing.assert_array_equal(found[0], np.take_along_axis(x, order, 1))
    np.testing.assert_array_equal(found[1], np.take_along_axis(y, order, 1))
    both = _less("%x0", "%x1", "a") + _less("%y0", "%y1", "b", "GT") + _less("%x0", "%x1", "e", "EQ")
    both += "      %k = stablehlo.select %e, %b, %a : tensor<i1>, tensor<i1>\n" + end
    found = run(_sorted(both, 2), tmp_path, x, y)
    order = np.stack([np.lexsort((-b, a)) for a, b in zip(x, y, strict=True)])
    np.testing.assert_array_equal(found[1], np.take_along_axis(y, order, 1))
    zeros = np.array([[0.0, -0.0, 1, -1, 0.0, -0.0, 2, np.nan, -0.0]] * 3, np.float32)
    zero = "      %z = stablehlo.constant dense<0.0> : tensor<f32>\n"
    for i in range(2):
        types = "(tensor<f32>, tensor<f32>) -> tensor<i1>"
        zero += f"      %e{i} = stablehlo.compare EQ, %x{i}, %z, FLOAT : {types}\n"
        zero += f"      %s{i} = stablehlo.select %e{i}, %z, %x{i} : tensor<i1>, tensor<f32>\n"
    found = run(_sorted(zero + _less("%s0", "%s1", "k") + end, 2), tmp_path, zeros, y)
    np.testing.assert_array_equal(found[1], np.take_along_axis(y, np.argsort(zeros, 1, kind="stable"), 1))
    size = "      %a = stablehlo.abs %x0 : tensor<f32>\n      %b = stablehlo.abs %x1 : tensor<f32>\n"
    found = run(_sorted(size + _less("%a", "%b", "k") + end, 1), tmp_path, y)
    np.testing.assert_array_equal(found[0], np.take_along_axis(y, np.argsort(np.abs(y), 1, kind="stable"), 1))


def test_axes_that_are_not_there(tmp_path: Path):
    line = "    %r = stablehlo.transpose %x, dims = [0, 2] : (tensor<2x3xf32>) -> tensor<2x3xf32>"
    refused(program(line, "%x: tensor<2x3xf32>", "tensor<2x3xf32>", "%r"), tmp_path, "no order of 2 axes", "E0302")


def test_a_scatter_that_combines_in_another_way(tmp_path: Path):
    line = (
        '    %r = "stablehlo.scatter"(%x, %i, %x) <{scatter_dimension_numbers = #stablehlo.scatter<'
        "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({\n"
        "    ^bb0(%p: tensor<f32>, %q: tensor<f32>):\n      %s = stablehlo.subtract %p, %q : tensor<f32>\n"
        "      %t = stablehlo.negate %s : tensor<f32>\n      stablehlo.return %t : tensor<f32>\n    }) : "
        "(tensor<6xf32>, tensor<6x1xi32>, tensor<6xf32>) -> tensor<6xf32>"
    )
    refused(
        program(line, "%x: tensor<6xf32>, %i: tensor<6x1xi32>", "tensor<6xf32>", "%r"), tmp_path, "does not combine"
    )
