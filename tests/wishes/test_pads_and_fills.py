"""Pads, fills and concats (rows 37 to 41 and 50 of docs/wishes.md): read where they are used or written where they
belong, of any kind, size, rank and type."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model
from tests.wishes.compared import by_default, compiled, missed, mlir, moves

ELEMENTS = {"float": np.float32, "float16": np.float16}


def _weights(*shape: int, element: str = "float") -> Any:
    return (0.3 * RNG.standard_normal(shape)).astype(ELEMENTS[element])


# row 37: pads of any kind ---------------------------------------------------------------------------------------------

SIDES = {1: (1, 2), 2: (1, 2, 3, 0), 3: (1, 0, 2, 1, 2, 1)}
IMAGES = {1: (23,), 2: (13, 12), 3: (6, 7, 5)}
KINDS = ("constant", "reflect", "edge", "wrap")


def _pad(mode: str, rank: int) -> tuple[str, dict[str, Any]]:
    low, high = SIDES[rank][:rank], SIDES[rank][rank:]
    return f'Pad<mode = "{mode}">(x, at{", v" if mode == "constant" else ""})', {"at": [0, 0, *low, 0, 0, *high]}


@pytest.mark.parametrize(("element", "mode", "rank"), by_default(product(ELEMENTS, KINDS, (2, 1, 3)), 4))
def test_row_37_a_pad_before_a_convolution(rank: int, mode: str, element: str):
    """Halves may be widened once, border and all, where each window would do it again."""
    pad, weights = _pad(mode, rank)
    dims = ", ".join(map(str, (2, 5, *IMAGES[rank])))
    weights |= {"v": np.asarray(1.5, ELEMENTS[element])} if mode == "constant" else {}
    weights["w"] = _weights(7, 5, *(3,) * rank, element=element)
    text = f"({element}[{dims}] x) => (y) {{ p = {pad} c = Conv(p, w) y = Relu(c) }}"
    program = compiled(onnx_model(text, weights, opset=19))
    assert moves(program) == {} and program.stats["dispatches"] <= (1 if element == "float" else 2), missed(program)


@pytest.mark.parametrize(
    ("reader", "mode"),
    by_default(product(["depthwise", "elementwise", "max", "mean"], ["wrap", "edge", "reflect", "constant"]), 5),
)
def test_row_37_a_pad_before_other_windows(reader: str, mode: str):
    pad, weights = _pad(mode, 2)
    if mode == "constant":
        weights["v"] = np.float32(-0.5)
    if reader == "depthwise":
        weights["w"] = _weights(6, 1, 3, 2)
    read = {
        "depthwise": "Conv<group = 6, strides = [2, 1]>(p, w)",
        "max": "MaxPool<kernel_shape = [2, 3]>(p)",
        "mean": "AveragePool<kernel_shape = [3, 3], strides = [2, 1]>(p)",
        "elementwise": "Tanh(p)",
    }[reader]
    program = compiled(onnx_model(f"(float[1, 6, 13, 12] x) => (y) {{ p = {pad} y = {read} }}", weights, opset=19))
    assert (program.stats["dispatches"], moves(program)) == (1, {}), missed(program)


STRIDED = {
    "depthwise": "Conv<group = 20, strides = [2, 2]>(p, w)",
    "max": "MaxPool<kernel_shape = [3, 3], strides = [2, 2]>(p)",
    "mean": "AveragePool<kernel_shape = [2, 2], strides = [2, 2]>(p)",
    "gaps": "MaxPool<kernel_shape = [3, 3], strides = [3, 3], dilations = [2, 2]>(p)",
}


@pytest.mark.parametrize(
    ("element", "batch", "reader", "mode"),
    by_default(product(ELEMENTS, ("n", "2"), STRIDED, ("wrap", "edge", "reflect", "constant")), 7),
)
def test_row_37_a_pad_before_a_window_with_steps(element: str, batch: str, reader: str, mode: str):
    """Of an argument, whose channels come first: lanes are several pixels apart."""
    pad, weights = _pad(mode, 2)
    if mode == "constant":
        weights["v"] = np.asarray(-0.5, ELEMENTS[element])
    if reader == "depthwise":
        weights["w"] = _weights(20, 1, 3, 3, element=element)
    text = f"({element}[{batch}, 20, 27, 18] x) => (y) {{ p = {pad} y = {STRIDED[reader]} }}"
    program = compiled(onnx_model(text, weights, opset=19), {"n": 3})
    assert (program.stats["dispatches"], moves(program)) == (1, {}), missed(program)


@pytest.mark.parametrize("mode", by_default(KINDS, 2))
def test_row_37_a_pad_of_an_image_of_any_size(mode: str):
    pad, weights = _pad(mode, 2)
    weights["w"] = _weights(7, 5, 3, 3)
    if mode == "constant":
        weights["v"] = np.float32(-0.5)
    text = f"(float[n, 5, h, w0] x) => (y) {{ p = {pad} c = Conv(p, w) y = Relu(c) }}"
    program = compiled(onnx_model(text, weights, opset=19), {"n": 2, "h": 9, "w0": 14})
    assert (program.stats["dispatches"], moves(program)) == (1, {}), missed(program)


@pytest.mark.parametrize("mode", by_default(KINDS, 2))
def test_row_37_a_pad_that_several_windows_read(mode: str):
    pad, weights = _pad(mode, 2)
    weights["w"] = _weights(7, 5, 3, 3)
    if mode == "constant":
        weights["v"] = np.float32(2)
    text = f"""(float[1, 5, 12, 9] x) => (y, z, q) {{ p = {pad} y = Conv(p, w)
        z = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(p)  q = Tanh(p) }}"""
    program = compiled(onnx_model(text, weights, opset=19))
    assert moves(program) == {}, missed(program)


PADDED = [
    ("1, 5, h, q", {"h": 9, "q": 12}),
    ("1, 5, 9, 12", {}),
    ("n, 5, 9, 12", {"n": 3}),
    ("n, 5, h, q", {"n": 2, "h": 7, "q": 5}),
]


@pytest.mark.parametrize(
    ("root", "dims", "sizes"),
    by_default(
        [
            (root, *one)
            for root in ("Conv(x, w)", "Conv<group = 5>(x, g)", "MaxPool<kernel_shape = [3, 3]>(x)")
            for one in PADDED
        ],
        2,
    ),
)
def test_row_37_a_pad_of_a_result_is_written_beside_it(root: str, dims: str, sizes: dict[str, int]):
    weights: dict[str, Any] = {"at": np.array([0, 0, 1, 2, 0, 0, 3, 1]), "v": np.float32(0.5)}
    weights |= {"w": _weights(7, 5, 3, 3)} if " w)" in root else {"g": _weights(5, 1, 3, 3)} if " g)" in root else {}
    program = compiled(
        onnx_model(f"(float[{dims}] x) => (y) {{ c = {root} r = Tanh(c) y = Pad(r, at, v) }}", weights), sizes
    )
    assert (program.stats["dispatches"], program.stats["copies"]) == (1, 0), missed(program)


# row 38: ... counted --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "counted"),
    [
        ('y = Pad<mode = "reflect">(x, at)', "gathers"),
        ('y = Pad<mode = "edge">(x, at)', "gathers"),
        ("y = Pad(x, at)", "copies"),
        ("y = Concat<axis = 1>(x, x)", "copies"),
        ("y = Gather<axis = 1>(x, i)", "gathers"),
        ("y = Transpose<perm = [1, 2, 0]>(x)", "standalone_transposes"),
        ("y = Slice(x, one, two)", "copies"),
    ],
)
def test_row_38_what_only_moves_is_counted(body: str, counted: str):
    weights = {"at": [0, 1, 2, 0, 2, 1], "i": [2, 0, 1, 1], "one": [0, 1, 0], "two": [5, 4, 3]}
    used = {name: np.asarray(value, np.int64) for name, value in weights.items() if f" {name}" in body}
    program = compiled(onnx_model(f"(float[5, 7, 9] x) => (y) {{ {body} }}", used))
    assert program.stats[counted] == 1, program.stats


# rows 39 and 40: insert_slice -----------------------------------------------------------------------------------------


def _insert(shape: list[int], low: list[int], high: list[int], element: str, value: str, reader: str) -> str:
    """`shape` put into a fill, read by `reader`."""
    whole = [a + b + c for a, b, c in zip(low, shape, high, strict=True)]
    small, large = (f"tensor<{'x'.join(map(str, sizes))}x{element}>" for sizes in (shape, whole))
    dims = ", ".join(f"d{i}" for i in range(len(shape)))
    iterators = ", ".join(['"parallel"'] * len(shape))
    return f"""func.func @f(%x: {small}) -> {large} {{
  %v = arith.constant {value} : {element}
  %e = tensor.empty() : {large}
  %f = linalg.fill ins(%v : {element}) outs(%e : {large}) -> {large}
  %p = tensor.insert_slice %x into %f{low} {shape} {[1] * len(shape)} : {small} into {large}
  %y = linalg.generic {{indexing_maps = [affine_map<({dims}) -> ({dims})>, affine_map<({dims}) -> ({dims})>],
      iterator_types = [{iterators}]}} ins(%p : {large}) outs(%e : {large}) {{
  ^bb0(%a: {element}, %o: {element}):
    %r = arith.{reader} %a, %v : {element}
    linalg.yield %r : {element}
  }} -> {large}
  return %y : {large}
}}"""


ADDS = [("f32", "0.0", "maximumf"), ("i32", "3", "muli"), ("f16", "1.5", "addf"), ("f64", "-1.0", "subf")]
ROOMS = [
    ([4, 5], [0, 3], [2, 0]),
    ([1, 6, 5, 8], [0, 1, 1, 0], [0, 1, 2, 0]),
    ([9], [2], [0]),
    ([3, 4, 5], [1, 1, 0], [0, 2, 1]),
]


@pytest.mark.parametrize(
    ("shape", "low", "high", "element", "value", "reader"),
    by_default([(*room, *add) for add, room in product(ADDS, ROOMS)], 6),
)
def test_row_39_a_slice_put_into_a_fill_is_a_pad(
    shape: list[int], low: list[int], high: list[int], element: str, value: str, reader: str, tmp_path: Path
):
    program = compiled(mlir(tmp_path, _insert(shape, low, high, element, value, reader)))
    assert (program.stats["dispatches"], moves(program)) == (1, {}), missed(program)


@pytest.mark.parametrize(("channels", "kernel", "stride"), [((8, 24), 3, 1), ((3, 16), 5, 2), ((5, 7), 2, 1)])
def test_row_39_before_a_convolution(channels: tuple[int, int], kernel: int, stride: int, tmp_path: Path):
    ins, outs = channels
    side, edge = 13, kernel // 2
    padded = side + 2 * edge
    rows = (padded - kernel) // stride + 1
    big, out = f"tensor<1x{padded}x{padded}x{ins}xf32>", f"tensor<1x{rows}x{rows}x{outs}xf32>"
    small, filters = f"tensor<1x{side}x{side}x{ins}xf32>", f"tensor<{kernel}x{kernel}x{ins}x{outs}xf32>"
    text = f"""func.func @f(%x: {small}, %w: {filters}) -> {out} {{
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : {big}
  %f = linalg.fill ins(%z : f32) outs(%e : {big}) -> {big}
  %p = tensor.insert_slice %x into %f[0, {edge}, {edge}, 0] [1, {side}, {side}, {ins}] [1, 1, 1, 1] : {small} into {big}
  %eo = tensor.empty() : {out}
  %fo = linalg.fill ins(%z : f32) outs(%eo : {out}) -> {out}
  %c = linalg.conv_2d_nhwc_hwcf {{dilations = dense<1> : tensor<2xi64>, strides = dense<{stride}> : tensor<2xi64>}}
      ins(%p, %w : {big}, {filters}) outs(%fo : {out}) -> {out}
  return %c : {out}
}}"""
    program = compiled(mlir(tmp_path, text))
    assert (program.stats["dispatches"], moves(program)) == (1, {}), missed(program)


def _chain(parts: list[int], others: list[int], axis: int, order: list[int], element: str) -> str:
    """Parts of these extents along `axis`, each through an op, put into an empty tensor one by one."""
    total = sum(parts)
    whole = [*others[:axis], total, *others[axis:]]
    large = f"tensor<{'x'.join(map(str, whole))}x{element}>"
    dims = ", ".join(f"d{i}" for i in range(len(whole)))
    iterators = ", ".join(['"parallel"'] * len(whole))
    arguments, lines, into = list[str](), list[str](), "%e"
    for i, size in enumerate(parts):
        shape = [*others[:axis], size, *others[axis:]]
        small = f"tensor<{'x'.join(map(str, shape))}x{element}>"
        arguments.append(f"%x{i}: {small}")
        lines.append(f"""  %e{i} = tensor.empty() : {small}
  %a{i} = linalg.generic {{indexing_maps = [affine_map<({dims}) -> ({dims})>, affine_map<({dims}) -> ({dims})>],
      iterator_types = [{iterators}]}} ins(%x{i} : {small}) outs(%e{i} : {small}) {{
  ^bb0(%v: {element}, %o: {element}):
    %r = arith.mulf %v, %v : {element}
    linalg.yield %r : {element}
  }} -> {small}""")
    for i in order:
        shape = [*others[:axis], parts[i], *others[axis:]]
        small = f"tensor<{'x'.join(map(str, shape))}x{element}>"
        at = [sum(parts[:i]) if d == axis else 0 for d in range(len(whole))]
        lines.append(
            f"  %c{i} = tensor.insert_slice %a{i} into {into}{at} {shape} {[1] * len(whole)} : {small} into {large}"
        )
        into = f"%c{i}"
    body = "\n".join(lines)
    return f"""func.func @f({", ".join(arguments)}) -> {large} {{
  %e = tensor.empty() : {large}
{body}
  return {into} : {large}
}}"""


CHAINS = [
    ([4, 1, 6], [7], 1, [1, 2, 0]),
    ([8, 8, 3], [1, 6, 5], 3, [0, 1, 2]),
    ([3, 5], [], 0, [0, 1]),
    ([4, 1, 6], [7], 0, [2, 0, 1]),
    ([2, 3], [4, 5], 1, [1, 0]),
    ([1, 2, 3, 4], [3, 2, 5], 2, [3, 1, 0, 2]),
]


@pytest.mark.parametrize(
    ("parts", "others", "axis", "order", "element"),
    by_default([(*chain, element) for element, chain in product(["f32", "f16", "f64"], CHAINS)], 6),
)
def test_row_40_slices_that_cover_everything_are_a_concat(
    parts: list[int], others: list[int], axis: int, order: list[int], element: str, tmp_path: Path
):
    program = compiled(mlir(tmp_path, _chain(parts, others, axis, order, element)))
    assert (program.stats["dispatches"], moves(program)) == (1, {}), missed(program)


@pytest.mark.parametrize(
    ("element", "ins", "growth"), by_default([(e, *s) for e in ELEMENTS for s in ((5, 12), (8, 8), (64, 16))], 2)
)
def test_row_40_a_concat_before_a_convolution_copies_nothing(ins: int, growth: int, element: str):
    text = f"""({element}[1, {ins}, 13, 11] x) => (y) {{ a = Conv<pads = [1, 1, 1, 1]>(x, v) r = Relu(a)
        c = Concat<axis = 1>(x, r)  y = Conv<pads = [1, 1, 1, 1]>(c, w) }}"""
    weights = {"v": _weights(growth, ins, 3, 3, element=element), "w": _weights(9, ins + growth, 3, 3, element=element)}
    program = compiled(onnx_model(text, weights))
    assert moves(program) == {} and program.stats["dispatches"] <= (2 if element == "float" else 3), missed(program)


# row 41: biases as inits, constants of a wider type -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("element", "wide", "layout", "ins", "outs", "kernel"),
    by_default(
        [
            (*types, layout, *sizes)
            for types in (("f32", "f64"), ("f16", "f32"))
            for layout in ("nchw_fchw", "nhwc_hwcf")
            for sizes in ((3, 5, 3), (8, 16, 1), (16, 32, 3))
        ],
        4,
    ),
)
def test_row_41_a_bias_as_the_init_and_a_slope_in_a_wider_type(
    ins: int, outs: int, kernel: int, element: str, wide: str, layout: str, tmp_path: Path
):
    side, rows = 9, 9 - kernel + 1
    first = layout.startswith("nchw")
    image = f"1x{ins}x{side}x{side}" if first else f"1x{side}x{side}x{ins}"
    filters = f"{outs}x{ins}x{kernel}x{kernel}" if first else f"{kernel}x{kernel}x{ins}x{outs}"
    result = f"1x{outs}x{rows}x{rows}" if first else f"1x{rows}x{rows}x{outs}"
    image, filters, result = (f"tensor<{one}x{element}>" for one in (image, filters, result))
    same = "affine_map<(a, b, c, d) -> (a, b, c, d)>"
    channel = f"affine_map<(a, b, c, d) -> ({'b' if first else 'd'})>"
    parallel = 'iterator_types = ["parallel", "parallel", "parallel", "parallel"]'
    text = f"""func.func @f(%x: {image}, %w: {filters}, %b: tensor<{outs}x{element}>) -> {result} {{
  %s = arith.constant 0.125 : {wide}
  %zero = arith.constant 0.0 : {element}
  %e = tensor.empty() : {result}
  %i = linalg.generic {{indexing_maps = [{channel}, {same}], {parallel}}}
      ins(%b : tensor<{outs}x{element}>) outs(%e : {result}) {{
  ^bb0(%v: {element}, %o: {element}):
    linalg.yield %v : {element}
  }} -> {result}
  %c = linalg.conv_2d_{layout} {{dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}}
      ins(%x, %w : {image}, {filters}) outs(%i : {result}) -> {result}
  %y = linalg.generic {{indexing_maps = [{same}, {same}], {parallel}}} ins(%c : {result}) outs(%e : {result}) {{
  ^bb0(%v: {element}, %o: {element}):
    %t = arith.truncf %s : {wide} to {element}
    %m = arith.mulf %v, %t : {element}
    %p = arith.cmpf ogt, %v, %zero : {element}
    %r = arith.select %p, %v, %m : {element}
    linalg.yield %r : {element}
  }} -> {result}
  return %y : {result}
}}"""
    program = compiled(mlir(tmp_path, text))
    assert moves(program) == {} and program.stats["dispatches"] <= (1 if element == "f32" else 2), missed(program)


# row 50: a scatter into a fill ----------------------------------------------------------------------------------------

READERS = {
    "relu": "y = Relu(s)",
    "two ops": "t = Tanh(s) y = Add(t, s)",
    "bias": "y = Add(s, b)",
}


PLACES = [((16, 8), (4, 1), [3, 0, 9, 15]), ((5, 67), (2, 1), [4, 1]), ((3, 4, 5), (2, 2), [0, 3, 2, 1])]


@pytest.mark.parametrize(
    ("element", "reader", "shape", "index", "places"),
    by_default([(e, r, *place) for e in ELEMENTS for r in READERS for place in PLACES], 6),
)
def test_row_50_what_reads_a_scatter_into_a_fill(
    shape: tuple[int, ...], index: tuple[int, int], places: list[int], element: str, reader: str
):
    count, depth = index
    update = ", ".join(map(str, (count, *shape[depth:])))
    weights: dict[str, Any] = {"sh": np.asarray(shape), "i": np.asarray(places).reshape(count, depth)}
    if reader == "bias":
        weights["b"] = _weights(shape[-1], element=element)
    weights["z"] = np.zeros((), ELEMENTS[element])
    text = f"({element}[{update}] u) => (y) {{ f = Expand(z, sh) s = ScatterND(f, i, u) {READERS[reader]} }}"
    program = compiled(onnx_model(text, weights))
    assert (program.stats["dispatches"], moves(program)) == (1, {}), missed(program)


STORED_AS = {"float": np.float32, "float16": np.float16, "double": np.float64} | {
    name: np.dtype(name) for name in ("uint8", "int8", "int32", "int64")
}
STORED = ["uint8", "int8", "int32", "int64", "float16", "float", "double"]


@pytest.mark.parametrize(
    ("stored", "asked", "place"), by_default(product(STORED, ["float", "double", "int32"], range(len(PLACES))), 6)
)
def test_row_50_what_reads_a_scatter_as_another_type(stored: str, asked: str, place: int):
    """Also where numbers are put in one place twice: the last one stays."""
    shape, (count, depth), _ = PLACES[place]
    places = np.stack([RNG.integers(0, size, count) for size in shape[:depth]], axis=1)
    update = ", ".join(map(str, (count, *shape[depth:])))
    numbers = {"int32": onnx.TensorProto.INT32, "float": onnx.TensorProto.FLOAT, "double": onnx.TensorProto.DOUBLE}
    weights: dict[str, Any] = {"sh": np.asarray(shape), "i": places, "z": np.asarray(3, STORED_AS[stored])}
    text = (
        f"({stored}[{update}] u) => (y) {{ f = Expand(z, sh) s = ScatterND(f, i, u)"
        f" c = Cast<to = {numbers[asked]}>(s) y = Add(c, c) }}"
    )
    program = compiled(onnx_model(text, weights))
    assert (program.stats["dispatches"], moves(program)) == (1, {}), missed(program)
