"""Reshapes, transposes and what a target asks of them (rows 20, 21, 23, 24, 28, 30 and 34 of docs/wishes.md)."""

from __future__ import annotations

import json
import math
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import fuseline
from fuseline.cli.main import main
from tests.draws import RNG, generator
from tests.graphs.onnx_text import onnx_model
from tests.small_models import SMALL_MODELS
from tests.wishes.compared import agree, by_default, compiled, missed, moves

NUMPY = {"float": np.float32, "float16": np.float16, "double": np.float64}


def _weights(*shape: int, element: str = "float") -> Any:
    return (RNG.standard_normal(shape) / math.sqrt(math.prod(shape[1:]))).astype(NUMPY[element])


# rows 20 and 21: no transposes of their own, and whose they are -------------------------------------------------------


@pytest.mark.parametrize(
    ("element", "depth", "source", "result"),
    by_default(product(["float", "float16"], [2, 3], ["x", "Relu(x)", "Conv(x, first)"], ["concat", "last"]), 4),
)
def test_row_20_a_dense_block_turns_nothing(source: str, depth: int, element: str, result: str):
    height, width, channels, growth = 11, 9, 6, 8
    weights: dict[str, Any] = (
        {"first": _weights(channels, channels, 1, 1, element=element)} if "first" in source else {}
    )
    lines, parts = [f"s = {'Identity(x)' if source == 'x' else source}"], ["s"]
    for i in range(depth):
        weights[f"w{i}"] = _weights(growth, channels + i * growth, 3, 3, element=element)
        read = "s" if i == 0 else f"k{i}"
        lines += [f"k{i} = Concat<axis = 1>({', '.join(parts)})"] if i else []
        lines += [f"c{i} = Conv<pads = [1, 1, 1, 1]>({read}, w{i})  r{i} = LeakyRelu(c{i})"]
        parts.append(f"r{i}")
    lines.append(f"k = Concat<axis = 1>({', '.join(parts)})" if result == "concat" else f"k = Tanh({parts[-1]})")
    text = f"({element}[1, {channels}, {height}, {width}] x) => (k) {{ {'  '.join(lines)} }}"
    program = compiled(onnx_model(text, weights))
    assert program.stats["standalone_transposes"] == 0, missed(program)


@pytest.mark.parametrize(
    ("op", "perm"), by_default(product(["Sigmoid", "LeakyRelu"], [[2, 3, 0, 1], [0, 2, 3, 1], [3, 0, 1, 2]]), 2)
)
def test_row_20_a_result_beside_one_that_is_turned(op: str, perm: list[int], tmp_path: Path):
    """As IREE has it: what follows a convolution is written in another order, and the convolution is a result, too."""
    text = f"""(float[2, 6, 9, 11] x) => (t) {{ c = Conv<pads = [1, 1, 1, 1]>(x, w)  y = {op}(c)
        t = Transpose<perm = {perm}>(y) }}"""
    program = compiled(onnx_model(text, {"w": _weights(8, 6, 3, 3)}))
    assert (program.stats["dispatches"], program.stats["standalone_transposes"]) == (1, 0), missed(program)


@pytest.mark.parametrize(
    ("element", "back", "grid", "shifted"),
    by_default(
        [
            (e, b, g, s)
            for e in ("float", "float16")
            for b in ("Add", "MatMul")
            for g in (False, True)
            for s in (1, 0, 3)
        ],
        4,
    ),
)
def test_row_20_windows_are_put_back_by_what_computes_them(element: str, back: str, grid: bool, shifted: int):
    """Windows, or a grid, of an image (Swin, MaxViT), which is rolled behind them."""
    rng = generator(f"windows {element} {back} {grid} {shifted}")
    rows, columns, window, width = (int(n) for n in rng.integers(2, 5, 4))
    counts, inner = ([window, window], [rows, columns]) if grid else ([rows, columns], [window, window])
    height, length = rows * window, columns * window
    parts, perm = [*counts, *inner], [2, 0, 3, 1, 4] if grid else [0, 2, 1, 3, 4]
    x = [counts[0] * counts[1], inner[0] * inner[1], 2, 7]
    text = f"""({element}{x} x, {element}[{height}, {length}, {width}] y) => (z) {{
        p = MatMul(x, values)  heads = Reshape(p, joined)  m = MatMul(heads, w)  b = Add(m, bias)
        v = Reshape(b, parts)  t = Transpose<perm = {perm}>(v)  i = Reshape(t, image)
        head = Slice(i, zero, cut, zero)  tail = Slice(i, cut, end, zero)  r = Concat<axis = 0>(tail, head)
        z = {"Add(r, y)" if back == "Add" else "MatMul(r, last)"} }}"""
    weights = {
        "values": _weights(7, 3, element=element),
        "joined": np.array([0, 0, 6]),
        "w": _weights(6, width, element=element),
        "bias": _weights(width, element=element),
        "last": _weights(width, 5, element=element),
        "parts": np.array([*parts, width]),
        "image": np.array([height, length, width]),
        "zero": np.array([0]),
        "cut": np.array([shifted]),
        "end": np.array([height]),
    }
    program = compiled(onnx_model(text, weights))
    assert program.stats["standalone_transposes"] == 0, missed(program)


MAKERS = {
    "product": "c = MatMul(x, w)",
    "epilogue": "m = MatMul(x, w)  c = Sigmoid(m)",
    "rows": "m = MatMul(x, w)  c = Softmax<axis = -1>(m)",
    "elementwise": "c = Tanh(x)",
    "argument": "c = Identity(x)",
}


@pytest.mark.parametrize(
    ("element", "maker", "rank"),
    by_default([(e, m, r) for e in ("float", "double", "float16") for r in (2, 4, 3) for m in MAKERS], 5),
)
def test_row_20_a_value_is_a_result_plain_and_turned(maker: str, rank: int, element: str):
    """One kernel writes both; an argument is copied, turned, by nothing else than a transposition."""
    rng = generator(f"{maker} {rank} {element}")
    shape = [int(rng.integers(1, 4)) for _ in range(rank - 2)] + [int(rng.integers(2, 50)) for _ in range(2)]
    perm = [int(axis) for axis in rng.permutation(rank)]
    perm = perm if perm != sorted(perm) else perm[::-1]
    weights = {"w": _weights(shape[-1], int(rng.integers(2, 70)), element=element)} if "w" in MAKERS[maker] else {}
    dims = ", ".join(map(str, shape))
    text = f"({element}[{dims}] x) => (c, t) {{ {MAKERS[maker]}  t = Transpose<perm = {perm}>(c) }}"
    program = compiled(onnx_model(text, weights))
    alone = int(maker == "argument" and [p for p in perm if shape[p] != 1] != sorted(p for p in perm if shape[p] != 1))
    assert program.stats["dispatches"] <= (1 if element != "float16" else 2), missed(program)
    assert program.stats["standalone_transposes"] <= alone, missed(program)


@pytest.mark.parametrize("target", by_default(["cpu", "cpu:avx2"], 1))
@pytest.mark.parametrize("rows", by_default([17, "m", 33, 1, 2, 5, 15, 16, 18], 2))
@pytest.mark.parametrize("op", by_default(["Identity", "Gelu"], 1))
def test_row_20_rows_and_columns_beside_whole_squares(op: str, rows: int | str, target: str):
    text = f"({{}}[{rows}, {{}}] x) => (c, t) {{{{ m = MatMul(x, w)  c = {op}(m)  t = Transpose<perm = [1, 0]>(c) }}}}"
    for columns, steps, element in ((11, 10, "float"), (33, 300, "float"), (40, 7, "double")):
        model = onnx_model(text.format(element, steps), {"w": _weights(steps, columns, element=element)}, opset=20)
        program = compiled(model, {"m": int(RNG.integers(1, 40))}, target=target)
        assert (program.stats["dispatches"], program.stats["standalone_transposes"]) == (1, 0), missed(program)


WINDOWS = {
    "convolution": ("Conv<pads = [1, 1, 1, 1]>(x, w)", (20, 6, 3, 3)),
    "strided": ("Conv<strides = [2, 1]>(x, w)", (7, 6, 3, 2)),
    "depthwise": ("Conv<group = 6, pads = [1, 0, 1, 2]>(x, w)", (6, 1, 3, 3)),
    "pooling": ("MaxPool<kernel_shape = [3, 3]>(x)", ()),
}


@pytest.mark.parametrize(
    ("height", "perm", "window"),
    by_default(product(["17", "h"], [[0, 2, 3, 1], [2, 3, 0, 1], [0, 1, 3, 2], [3, 1, 2, 0]], WINDOWS), 5),
)
def test_row_20_an_image_is_a_result_and_read_on_and_turned(window: str, perm: list[int], height: str):
    body, shape = WINDOWS[window]
    weights = {"w": _weights(*shape)} if shape else {}
    text = f"""(float[2, 6, {height}, 19] x) => (r, t, u) {{ c = {body}  r = Tanh(c)
        t = Transpose<perm = {perm}>(r)  u = MaxPool<kernel_shape = [2, 2]>(r) }}"""
    program = compiled(onnx_model(text, weights), {"h": 14})
    assert program.stats["standalone_transposes"] == 0 and program.stats["dispatches"] <= 2, missed(program)
    unread = text.replace("(r, t, u)", "(r, t)").replace("u = MaxPool<kernel_shape = [2, 2]>(r)", "")
    program = compiled(onnx_model(unread, weights), {"h": 14})
    assert program.stats["dispatches"] == 1, missed(program)
    assert program.stats["fallbacks"] == 0 or window != "depthwise" or height != "17"


@pytest.mark.parametrize("depthwise", [False, True])
@pytest.mark.parametrize("quantized", [False, True])
def test_row_20_channels_last_and_back(depthwise: bool, quantized: bool):
    """An export of TensorFlow turns each image to channels first and back."""
    body = "c = Conv<group = 8>(t, w)" if depthwise else "c = Conv(t, w)"
    codes = "q = QuantizeLinear(u, s, z)  y = DequantizeLinear(q, s, z)" if quantized else "y = Tanh(u)"
    text = f"""(float[2, 13, 11, 8] x) => (y) {{ t = Transpose<perm = [0, 3, 1, 2]>(x)  {body}  r = Clip(c, low, high)
        u = Transpose<perm = [0, 2, 3, 1]>(r)  {codes} }}"""
    weights: dict[str, Any] = {
        "w": _weights(8, 1 if depthwise else 8, 3, 3),
        "low": np.float32(0),
        "high": np.float32(6),
    }
    weights |= {"s": np.float32(0.0235), "z": np.int8(-128)} if quantized else {}
    program = compiled(onnx_model(text, weights))
    assert (program.stats["dispatches"], moves(program)) == (1, {}), missed(program)


@pytest.mark.parametrize("rank", [3, 4, 5])
def test_row_21_a_transpose_has_the_name_of_its_node(rank: int):
    """.. where it runs by itself, and where it runs with others."""
    rng = generator(f"rank {rank}")
    perm = [int(axis) for axis in rng.permutation(rank)]
    perm = perm if perm != sorted(perm) else perm[::-1]
    dims = ", ".join(str(3 + axis) for axis in range(rank))
    text = f"(float[{dims}] x) => (y) {{ [turn] t = Transpose<perm = {perm}>(x)"
    alone = compiled(onnx_model(f"{text} [last] y = Identity(t) }}"))
    (dispatch,) = alone.record.dispatches
    assert {node for member in dispatch.members for node in member.nodes} >= {"turn"}
    joined = compiled(onnx_model(f"{text} [last] y = Tanh(t) }}"))
    (dispatch,) = joined.record.dispatches
    assert {node for member in dispatch.members for node in member.nodes} == {"last"}
    assert joined.record.eliminated == {"turn": "propagate-transposes"}


@pytest.mark.parametrize("growth", [8, 12])
def test_row_21_a_merged_transpose_is_of_every_node_that_reads_it(growth: int):
    text = """(float[1, 6, 10, 12] x) => (y) { [c1] a = Conv<pads = [1, 1, 1, 1]>(x, v)  [r1] r = LeakyRelu(a)
        [k1] k = Concat<axis = 1>(x, r)  [c2] b = Conv<pads = [1, 1, 1, 1]>(k, w)  [k2] m = Concat<axis = 1>(x, b)
        [c3] y = Conv(m, u) }"""
    weights = {
        "v": _weights(growth, 6, 3, 3),
        "w": _weights(growth, 6 + growth, 3, 3),
        "u": _weights(4, 6 + growth, 1, 1),
    }
    program = compiled(onnx_model(text, weights))
    turned = [m for d in program.record.dispatches for m in d.members if m.kind == "transpose"]
    assert not any({"r1"} & set(member.nodes) for member in turned), turned


# rows 23 and 24: files and names of dispatches ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "fusion"), by_default(product(["diamond", "convolutions", "attention"], ["aggressive", "none"]), 2)
)
def test_row_23_every_dispatch_is_a_program_in_a_file(name: str, fusion: str, tmp_path: Path):
    model = SMALL_MODELS[name]()
    onnx.save(model, tmp_path / "m.onnx")
    folder = tmp_path / "dispatches"
    given = [
        "compile",
        str(tmp_path / "m.onnx"),
        "--target",
        "null",
        "--fusion",
        fusion,
        "--dump-dispatches",
        str(folder),
    ]
    assert main(given) == 0
    listed = json.loads((folder / "index.json").read_text())["dispatches"]
    assert len(listed) == fuseline.compile(model, target="null", fusion=fusion).stats["dispatches"]
    for one in listed:
        program = fuseline.compile(folder / one["file"], threads=1, cache=False)
        oracle = fuseline.compile(folder / one["file"], target="interpreter", fusion="none", cache=False)
        feeds = {item.name: _feed(item) for item in oracle.inputs}
        found = program.run(feeds)
        for output, expected in oracle.run(feeds).items():
            agree(found[output], expected, f"{one['file']} {output}")


def _feed(item: Any) -> Any:
    shape = [size if isinstance(size, int) else 3 for size in item.shape]
    return RNG.integers(0, 9, shape) if item.dtype.kind == "i" else RNG.standard_normal(shape).astype(item.dtype)


@pytest.mark.parametrize(
    ("body", "kind", "shape"),
    [
        ("y = Transpose<perm = [2, 0, 1]>(x)", "transpose", (9, 4, 6)),
        ("y = Tanh(x)", "elementwise", (4, 6, 9)),
        ("y = ReduceSum<keepdims = 0>(x, one)", "reduction", (4, 9)),
        ("y = MatMul(x, w)", "contraction", (4, 6, 5)),
        ("y = Softmax<axis = -1>(x)", "reduction", (4, 6, 9)),
    ],
)
@pytest.mark.parametrize("element", ["float", "double"])
def test_row_24_a_dispatch_is_called_what_it_does_and_how_large_it_is(
    body: str, kind: str, shape: tuple[int, ...], element: str
):
    weights: dict[str, Any] = {"w": _weights(9, 5, element=element)} if " w" in body else {}
    weights |= {"one": np.array([1])} if "one" in body else {}
    (dispatch,) = compiled(onnx_model(f"({element}[4, 6, 9] x) => (y) {{ {body} }}", weights)).record.dispatches
    words = dispatch.label.split("_")
    assert (words[1], words[-1]) == (kind, "f32" if element == "float" else "f64"), dispatch.label
    assert sorted(map(int, words[-2].split("x"))) == sorted(size for size in shape) or math.prod(
        map(int, words[-2].split("x"))
    ) == math.prod(shape), dispatch.label


def test_row_24_sizes_that_only_the_run_tells_have_names():
    (dispatch,) = compiled(onnx_model("(float[n, 6] x) => (y) { y = Tanh(x) }"), {"n": 5}).record.dispatches
    assert dispatch.label.startswith("000_elementwise_") and dispatch.label.endswith("_f32"), dispatch.label


# row 28: reshapes that regroup ----------------------------------------------------------------------------------------


def _factors(rng: np.random.Generator, elements: int, rank: int) -> list[int]:
    """A shape of this rank with so many elements."""
    sizes = [1] * rank
    for prime in (2, 2, 2, 2, 3, 3, 5, 7):
        if elements % prime == 0:
            sizes[int(rng.integers(rank))] *= prime
            elements //= prime
    sizes[-1] *= elements
    return sizes


@pytest.mark.parametrize(
    ("element", "seed", "islands"), by_default(product(["float", "float16", "double"], range(4), [2, 3, 5]), 5)
)
def test_row_28_islands_of_reshapes_are_one_dispatch(seed: int, islands: int, element: str):
    """Each island adds an operand of its own shape, so that no side can lose its shape for free."""
    rng = generator(f"{seed} {islands}")
    elements = int(rng.choice([24, 120, 96, 360, 840]))
    shapes = [_factors(rng, elements, int(rng.integers(1, 5))) for _ in range(islands)]
    lines, given, weights = ["t = Tanh(x)"], [f"{element}{shapes[0]} x"], dict[str, Any]()
    for i, shape in enumerate(shapes):
        weights[f"s{i}"] = np.array(shape)
        given.append(f"{element}{shape} a{i}")
        source = "t" if i == 0 else f"y{i - 1}"
        lines.append(f"r{i} = Reshape({source}, s{i})  m{i} = Add(r{i}, a{i})  y{i} = Sigmoid(m{i})")
    text = f"({', '.join(given)}) => (y{islands - 1}) {{ {' '.join(lines)} }}"
    program = compiled(onnx_model(text, weights))
    assert (program.stats["dispatches"], moves(program)) == (1, {}), (shapes, missed(program))


def _grouped(rng: np.random.Generator, factors: list[int]) -> list[int]:
    """Neighbours among `factors` as one, where they are."""
    cuts = [0, *(i for i in range(1, len(factors)) if rng.integers(2)), len(factors)]
    return [int(np.prod(factors[low:high])) for low, high in pairwise(cuts)]


@pytest.mark.parametrize(("seed", "islands"), by_default(product(range(6), [4, 3, 5]), 6))
def test_row_28_islands_of_rows_meet_in_sizes_that_fit_all(seed: int, islands: int):
    """Each island between the first and the last has an operand of its last dimension alone."""
    rng = generator(f"{seed} {islands}")
    factors = [int(rng.choice([2, 3])) for _ in range(5)]
    shapes = [_grouped(rng, factors) for _ in range(islands)]
    lines, given, weights = ["y0 = Tanh(x)"], [f"float{shapes[0]} x"], dict[str, Any]()
    for i, shape in enumerate(shapes[1:], 1):
        weights[f"s{i}"] = np.array(shape)
        given.append(f"float{shape[-1:]} a{i}")
        added = f"m{i} = Add(r{i}, a{i})" if i < islands - 1 else f"m{i} = Exp(r{i})"
        lines.append(f"r{i} = Reshape(y{i - 1}, s{i})  {added}  y{i} = Sigmoid(m{i})")
    text = f"({', '.join(given)}) => (y{islands - 1}) {{ {' '.join(lines)} }}"
    program = compiled(onnx_model(text, weights))
    assert (program.stats["dispatches"], moves(program)) == (1, {}), (shapes, missed(program))


@pytest.mark.parametrize(
    ("before", "after", "sizes"),
    [
        (["n", 24], [-1, 8], {"n": 5}),
        (["n", 24], [-1, 2, 12], {"n": 3}),
        (["n", 4, 6], [0, 3, 8], {"n": 7}),
        (["n", "m", 6], [0, 0, 3, 2], {"n": 2, "m": 5}),
        (["n", 6, 4], [-1], {"n": 2}),
    ],
)
def test_row_28_symbolic_extents(before: list[Any], after: list[int], sizes: dict[str, int]):
    dims = ", ".join(map(str, before))
    text = (
        f"(float[{dims}] x, float[{before[-1]}] b) => (y) {{ a = Add(x, b) e = Exp(a) r = Reshape(e, s) y = Tanh(r) }}"
    )
    program = compiled(onnx_model(text, {"s": np.array(after)}), sizes)
    assert (program.stats["dispatches"], moves(program)) == (1, {}), missed(program)


@pytest.mark.parametrize(
    ("between", "behind", "strides"),
    by_default(product(["", "Relu", "Tanh"], [False, True], [1, 2]), 3),
)
def test_row_28_rows_of_a_product_are_the_image_of_a_window(between: str, behind: bool, strides: int):
    """An inverted bottleneck whose products know rows only: as many dispatches as over images, and no larger image is
    stored."""
    height, width, channels = int(RNG.integers(8, 30)), int(RNG.integers(8, 30)), int(RNG.choice([24, 48, 96]))
    weights: dict[str, Any] = {
        "w": _weights(16, channels),
        "d": _weights(channels, 1, 3, 3),
        "v": _weights(channels, 24),
    }
    pixels = [height, width], [height * width]
    counts: list[int] = []
    for rows in pixels:
        shape = np.array([1, height, width, channels])
        last = "z = Transpose<perm = [0, 2, 3, 1]>(y)  q = MatMul(z, v)" if behind else "q = Identity(y)"
        text = f"""(float[{", ".join(map(str, rows))}, 16] x) => (q) {{
            m = MatMul(x, w)  r = {between or "Identity"}(m)  i = Reshape(r, image)
            t = Transpose<perm = [0, 3, 1, 2]>(i)
            y = Conv<group = {channels}, strides = [{strides}, {strides}]>(t, d)  {last} }}"""
        used = {name: value for name, value in weights.items() if name != "v" or behind}
        program = compiled(onnx_model(text, {**used, "image": shape}))
        counts.append(program.stats["dispatches"])
        assert all("between" not in code for code, *_ in missed(program)), missed(program)
    assert counts[0] == counts[1]


ROOTS = ["Conv<pads = [1, 1, 1, 1]>(x, w)", "Conv<group = 8>(x, d)", "MaxPool<kernel_shape = [3, 3]>(x)"]


@pytest.mark.parametrize(
    ("groups", "element", "batch", "behind"),
    by_default(product([2, 3, 6], ["float", "double"], [1, 2, "n"], [False, True]), 4),
)
def test_row_28_a_group_norm_behind_a_convolution(groups: int, element: str, batch: int | str, behind: bool):
    """The moments of channels, then of groups; scale, bias and activation with what is normalised (U-nets of
    diffusion). IREE has 4 dispatches, too."""
    weights = {
        "w": _weights(12, 3, 3, 3, element=element),
        "last": _weights(8, 12, 1, 1, element=element),
        "parts": np.array([0, groups, -1]),
        "one": np.ones(groups, NUMPY[element]),
        "zero": np.zeros(groups, NUMPY[element]),
        "s": _weights(12, 1, 1, element=element),
        "b": _weights(12, 1, 1, element=element),
    }
    last = "Conv(y, last)" if behind else "Relu(y)"
    text = f"""({element}[{batch}, 3, 9, 10] x) => (z) {{ c = Conv<pads = [1, 1, 1, 1]>(x, w)
        r = Reshape(c, parts)  n = InstanceNormalization(r, one, zero)  q = Shape(c)  g = Reshape(n, q)
        m = Mul(g, s)  a = Add(m, b)  t = Sigmoid(a)  y = Mul(a, t)  z = {last} }}"""
    program = compiled(onnx_model(text, weights), {"n": 3})
    assert program.stats["dispatches"] <= 4 and not moves(program), missed(program)


UPSAMPLED = {
    "convolution": "c = Conv<pads = [1, 1, 1, 1]>(y, w)",
    "depthwise": "c = Conv<pads = [1, 1, 1, 1], group = 6>(y, w)",
    "product": "c = Conv(y, w)",
    "pooling": "c = MaxPool<kernel_shape = [3, 3], pads = [1, 1, 1, 1]>(y)",
}


@pytest.mark.parametrize(
    ("root", "factor", "element", "batch"),
    by_default(product(list(UPSAMPLED), [2, 3], ["float", "double"], [2, "n"]), 6),
)
def test_row_28_an_upsampled_image_is_added_where_a_root_makes_the_other(
    root: str, factor: int, element: str, batch: int | str
):
    """As feature pyramids do; the image is computed, too."""
    channels, taps = (1 if root == "depthwise" else 6), (1 if root == "product" else 3)
    weights = {
        "w": _weights(6, channels, taps, taps, element=element),
        "first": _weights(6, 3, 1, 1, element=element),
        "scales": np.array([1, 1, factor, factor], np.float32),
    }
    text = f"""({element}[{batch}, 3, 5, 7] x, {element}[{batch}, 6, {5 * factor}, {7 * factor}] y) => (z) {{
        a = Conv(x, first)  u = Resize<mode = "nearest", coordinate_transformation_mode = "asymmetric",
        nearest_mode = "floor">(a, , scales)  {UPSAMPLED[root]}  s = Add(u, c)  z = Tanh(s) }}"""
    program = compiled(onnx_model(text, weights), {"n": 3})
    assert program.stats["dispatches"] <= 2 and not moves(program), missed(program)


@pytest.mark.parametrize(("element", "seed", "root"), by_default(product(["float", "double"], range(3), ROOTS), 3))
def test_row_28_behind_a_root(root: str, seed: int, element: str):
    rng = generator(f"{root} {seed}")
    side = 14 if "pads" in root else 12
    channels = 16 if "pads" in root else 8
    after = _factors(rng, 2 * channels * side * side, int(rng.integers(2, 5)))
    weights: dict[str, Any] = {"w": _weights(16, 8, 3, 3, element=element)} if " w" in root else {}
    weights |= {"d": _weights(8, 1, 3, 3, element=element)} if " d" in root else {}
    text = f"({element}[2, 8, 14, 14] x) => (y) {{ c = {root} e = Tanh(c) r = Reshape(e, s) y = Sigmoid(r) }}"
    program = compiled(onnx_model(text, weights | {"s": np.array(after)}))
    assert (program.stats["dispatches"], moves(program)) == (1, {}), (after, missed(program))


# rows 30 and 34: whole tiles, passes and options ----------------------------------------------------------------------

TILES = """name = "npu"
threads = 4
roots_limit = 1
arms_limit = 4

[tile_multiples]
OH = {oh}
OW = 4
OC = {oc}
IC = 16
M = 16
N = {oc}
K = 16
"""


@pytest.mark.parametrize(
    ("oh", "oc", "side"), by_default([(*t, side) for t in ((4, 16), (2, 32), (8, 8)) for side in (13, "n", 16)], 2)
)
def test_row_30_convolutions_of_any_kind_grow_to_whole_tiles(side: int | str, oh: int, oc: int, tmp_path: Path):
    text = f"""(float[1, 5, {side}, {side}] x) => (y) {{ a = Conv<pads = [1, 1, 1, 1]>(x, u)  r = Relu(a)
        b = Conv(r, v)  c = Relu(b)  d = Conv<group = 10, pads = [1, 1, 1, 1]>(c, w)  e = Relu(d)  y = Add(e, c) }}"""
    weights = {"u": _weights(7, 5, 3, 3), "v": _weights(10, 7, 1, 1), "w": _weights(10, 1, 3, 3)}
    (tmp_path / "npu.toml").write_text(TILES.format(oh=oh, oc=oc))
    model, sizes = onnx_model(text, weights), {"n": 13}
    padded = compiled(model, sizes, target=f"cpu:{tmp_path / 'npu.toml'}", threads=None)
    rows = {remark.code for remark in padded.record.remarks if remark.rule == "pad-to-tile"}
    assert rows == ({"unknown-tile"} if side == "n" else set())
    channels = [int(node.loops[2]) for node in padded.record.fusion_nodes.values() if node.kind == "convolution"]
    assert channels and all(count % oc == 0 for count in channels), "whole tiles, whatever the image"
    (tmp_path / "npu.toml").write_text('name = "npu"\nthreads = 4\nroots_limit = 1\narms_limit = 4\n')
    plain = compiled(model, sizes, target=f"cpu:{tmp_path / 'npu.toml'}", threads=None)
    assert padded.stats["dispatches"] <= plain.stats["dispatches"], "elementwise consumers grow along"


PIPELINES = [
    "canonicalize,cse,propagate-transposes,bubble-expand-shapes,form-dispatch-regions{without=row-chain}",
    "cleanup,form-dispatch-regions{level=none}",
    "cleanup,layout,padding,fusion",
    "cleanup,layout,fusion,dispatch,dedup",
]


@pytest.mark.parametrize(("name", "passes"), by_default(product(["mlp", "convolutions", "diamond"], PIPELINES), 2))
def test_row_34_a_pipeline_is_an_option(name: str, passes: str, tmp_path: Path):
    model = SMALL_MODELS[name]()
    program = compiled(model, passes=passes)
    onnx.save(model, tmp_path / "m.onnx")
    assert (
        main(["compile", str(tmp_path / "m.onnx"), "-p", passes, "-o", str(tmp_path / "m.fuse"), "--threads", "2"]) == 0
    )
    assert fuseline.load(tmp_path / "m.fuse").stats["dispatches"] == program.stats["dispatches"]


@pytest.mark.parametrize("level", ["none", "default", "aggressive"])
@pytest.mark.parametrize("name", by_default(["mlp", "convolutions"], 1))
def test_row_34_options_of_passes_in_python(name: str, level: str):
    program = compiled(SMALL_MODELS[name](), pass_options={"form-dispatch-regions": {"level": level}})
    assert program.stats["dispatches"] == compiled(SMALL_MODELS[name](), fusion=level).stats["dispatches"]
