"""Integers that sizes and offsets are learned from: computed by the host step, to the same numbers as by a dispatch, on
every target, and refused for the same reasons."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray

import fuseline
from fuseline.compiled_model import CompiledModel
from fuseline.errors import FuselineError
from fuseline.targets.cpu.c_export.export import export_c
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model

Array = NDArray[Any]
Feeds = Mapping[str, Any]
OFF = {"compute-sizes-on-host": {"most_ops": 0}}
TARGETS = ("cpu", "interpreter")


def _outcome(program: CompiledModel, feeds: Feeds) -> list[Array] | tuple[str, str]:
    """The outputs, or the code and the message of a refusal."""
    try:
        return list(program.run(dict(feeds)).values())
    except FuselineError as error:
        return error.code, error.message


def _compiled(model: Any, target: str = "cpu", **options: Any) -> CompiledModel:
    return fuseline.compile(model, target=target, threads=1, cache=False, **options)


def _check(model: Any, feeds: Sequence[Feeds], fewer: int = 1) -> list[list[Array] | tuple[str, str]]:
    """What `model` answers for each of `feeds`: as without the pass on each target, with `fewer` dispatches."""
    plain = _compiled(model, pass_options=OFF)
    wanted = [_outcome(plain, one) for one in feeds]
    for target in TARGETS:
        program = _compiled(model, target)
        if target == "cpu":
            assert program.stats["dispatches"] == plain.stats["dispatches"] - fewer
        for one, expected in zip(feeds, wanted, strict=True):
            found = _outcome(program, one)
            assert isinstance(found, tuple) == isinstance(expected, tuple), (target, found, expected)
            if isinstance(found, tuple):
                assert found == expected
                continue
            for ours, theirs in zip(found, expected, strict=True):
                np.testing.assert_array_equal(ours, theirs, err_msg=target)
    return wanted


def _answers(model: Any, feeds: Sequence[Feeds], fewer: int = 1) -> list[list[Array]]:
    """The same where nothing is refused."""
    found = [one for one in _check(model, feeds, fewer) if not isinstance(one, tuple)]
    assert len(found) == len(feeds)
    return found


# MLIR: any chain, from anywhere, to sizes and places ------------------------------------------------------------------

_ROW = "affine_map<(i) -> (i)>"
_CHAINS = {
    "clamp": ("arith.cmpi slt, %v, %hi : T\n%b = arith.select %a, %v, %hi : T\n%c = arith.maxsi %b, %lo : T", "%a"),
    "linear": ("arith.muli %v, %lo : T\n%b = arith.addi %a, %hi : T\n%c = arith.andi %b, %mask : T", "%a"),
    "quotient": ("arith.divsi %hi, %v : T\n%b = math.absi %a : T\n%c = arith.minui %b, %hi : T", "%a"),
    "bits": ("arith.shrui %v, %lo : T\n%b = arith.xori %a, %v : T\n%c = arith.remui %b, %hi : T", "%a"),
}
_SOURCES = {
    "argument": ("%p: T", "", "%p"),
    "tensor": ("%p: tensor<T>", "%v0 = tensor.extract %p[] : tensor<T>", "%v0"),
    "element": ("%p: tensor<2x3xT>", "%v0 = tensor.extract %p[%one, %two] : tensor<2x3xT>", "%v0"),
    "row": ("%p: tensor<?xT>", "%v0 = tensor.extract %p[%two] : tensor<?xT>", "%v0"),
}
_SINKS = {
    "offset": ("tensor<9xf32>", "%s = tensor.extract_slice %x[%n] [9] [1] : tensor<?xf32> to tensor<9xf32>", "9"),
    "size": ("tensor<?xf32>", "%s = tensor.extract_slice %x[0] [%n] [1] : tensor<?xf32> to tensor<?xf32>", "?"),
    "empty": (
        "tensor<?xf32>",
        """%s0 = tensor.empty(%n) : tensor<?xf32>
  %k = arith.constant 2.0 : f32
  %s = linalg.fill ins(%k : f32) outs(%s0 : tensor<?xf32>) -> tensor<?xf32>""",
        "?",
    ),
}


def _text(chain: str, source: str, sink: str, bits: int) -> str:
    """MLIR whose offset or size is what `chain` makes of a number of `bits` that `source` gives."""
    argument, read, value = _SOURCES[source]
    lines, first = _CHAINS[chain]
    result, use, size = _SINKS[sink]
    square = f"tensor<{size}xf32>"
    text = f"""func.func @main({argument}, %x: tensor<?xf32>) -> {result} {{
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %lo = arith.constant 1 : T
  %hi = arith.constant 11 : T
  %mask = arith.constant 15 : T
  {read}
  {first} = {lines.replace("%v", value)}
  %n = arith.index_cast %c : T to index
  {use}
  %zero = arith.constant 0 : index
  {"%m = tensor.dim %s, %zero : tensor<?xf32>" if size == "?" else ""}
  %e = tensor.empty({"%m" if size == "?" else ""}) : {square}
  %r = linalg.generic {{indexing_maps = [{_ROW}, {_ROW}], iterator_types = ["parallel"]}}
      ins(%s : {square}) outs(%e : {square}) {{
  ^bb0(%in: f32, %out: f32):
    %t = arith.mulf %in, %in : f32
    linalg.yield %t : f32
  }} -> {square}
  return %r : {square}
}}"""
    return text.replace("xT>", f"xi{bits}>").replace("<T>", f"<i{bits}>").replace(": T", f": i{bits}")


def _fed(source: str, bits: int, number: int) -> Array:
    """What is fed as `%p` so that the number read is `number`."""
    shape = {"argument": (), "tensor": (), "element": (2, 3), "row": (3,)}[source]
    fed = RNG.integers(-100, 100, shape).astype(f"int{bits}")
    fed[{"argument": (), "tensor": (), "element": (1, 2), "row": (2,)}[source]] = number
    return fed


_CASES = [
    *((chain, "tensor", "offset", bits) for chain in _CHAINS for bits in (8, 32, 64)),
    *(("clamp", source, "size", 16) for source in _SOURCES),
    *((chain, "row", "empty", 32) for chain in _CHAINS),
    ("linear", "argument", "offset", 8),
    ("bits", "element", "size", 64),
]


@pytest.mark.parametrize(("chain", "source", "sink", "bits"), _CASES)
def test_numbers_are_those_that_a_dispatch_makes(chain: str, source: str, sink: str, bits: int, tmp_path: Path) -> None:
    path = tmp_path / "m.mlir"
    path.write_text(_text(chain, source, sink, bits))
    ends = np.iinfo(f"int{bits}")
    numbers = [-7, -1, 1, 5, 12, ends.min, ends.max, int(RNG.integers(ends.min, ends.max))]
    x = RNG.random(40).astype(np.float32)
    feeds = [{"p": _fed(source, bits, number), "x": x} for number in numbers]
    wanted = _check(path, feeds)
    assert len({str(one) for one in wanted}) > 1  # numbers that are fed make a difference


def test_what_is_no_size_and_what_lies_outside_is_refused_as_before(tmp_path: Path) -> None:
    path = tmp_path / "m.mlir"
    path.write_text(_text("clamp", "tensor", "size", 32).replace("arith.maxsi %b, %lo", "arith.addi %b, %b"))
    assert [_compiled(path, pass_options=one).stats["arena_bytes"] for one in (OFF, {})] == [64, 0]
    x = RNG.random(7).astype(np.float32)
    wanted = _check(path, [{"p": np.int32(number), "x": x} for number in (3, -1, 4, 11, 1000)])
    codes = [one[0] if isinstance(one, tuple) else None for one in wanted]
    assert codes == [None, "E0203", "E0203", "E0203", "E0203"]


def test_a_number_that_is_data_too_is_computed_on_both_sides(tmp_path: Path) -> None:
    """The slice and what reads the number are one dispatch, which they could not be if the host read it from there."""
    text = _text("clamp", "argument", "size", 32).replace("    %t = arith.mulf %in, %in : f32", """\
    %w = arith.sitofp %c : i32 to f32
    %t = arith.mulf %in, %w : f32""")  # fmt: skip
    path = tmp_path / "m.mlir"
    path.write_text(text)
    x = RNG.random(40).astype(np.float32)
    for number, (found,) in zip(
        (-3, 4, 99), _answers(path, [{"p": np.int32(n), "x": x} for n in (-3, 4, 99)]), strict=True
    ):
        size = min(max(number, 1), 11)
        np.testing.assert_array_equal(found, x[:size] * np.float32(size))


# ONNX: operators that the host runs -----------------------------------------------------------------------------------

_ONNX = {
    "slice": (
        "int64[1] s, int64[1] e",
        "a = Max(s, zero1) b = Min(e, ten1) r = Slice(x, a, b)",
        [{"s": [-3], "e": [5]}, {"s": [2], "e": [200]}, {"s": [9], "e": [3]}, {"s": [0], "e": [0]}],
    ),
    "range": (
        "int64 k",
        "s = Shape(x) g = Gather(s, zero) a = Mul(k, g) b = Add(a, one) r = Range(zero, b, one)",
        [{"k": 3}, {"k": 0}, {"k": -4}],
    ),
    "expand": (
        "int64[2] p",
        "a = Mul(p, two2) r = Expand(one1f, a)",
        [{"p": [1, 2]}, {"p": [3, 1]}, {"p": [0, 2]}],
    ),
    "reshape": (
        "int64[1] p",
        "a = Mul(p, two1) b = Concat<axis=0>(a, last1) r = Reshape(x, b)",
        [{"p": [1]}, {"p": [2]}, {"p": [3]}],
    ),
    "pad": (
        "int64[1] p",
        "a = Add(p, two1) b = Concat<axis=0>(p, a) r = Pad(x, b)",
        [{"p": [1]}, {"p": [0]}, {"p": [-1]}],
    ),
    "tile": (
        "int32 p",
        "q = Cast<to=7>(p) a = Mod(q, three) b = Unsqueeze(a, zero1) r = Tile(x, b)",
        [{"p": 1}, {"p": 5}, {"p": 6}],
    ),
    "where": (
        "int64[1] p, bool[1] c",
        "q = Neg(p) a = Where(c, p, q) d = Max(a, one1) r, i = TopK(x, d)",
        [{"p": [3], "c": [True]}, {"p": [-4], "c": [False]}, {"p": [-4], "c": [True]}],
    ),
    "bytes": (
        "uint8[1] p",
        "a = Add(p, seven1) b = Cast<to=7>(a) r = Tile(x, b)",
        [{"p": [1]}, {"p": [250]}, {"p": [249]}],
    ),
    "scaled": (
        "float p",
        "q = Mul(p, threehalves) a = Floor(q) b = Cast<to=7>(a) c = Unsqueeze(b, zero1) r = Slice(x, zero1, c)",
        [{"p": p} for p in (0, 1, 3.4, 7.9, 100, -2.5)],
    ),
    "scaled size": (
        "float[m] w",
        "s = Shape(w) f = Cast<to=11>(s) q = Mul(f, tenth1) a = Ceil(q) b = Cast<to=7>(a) r = Tile(x, b)",
        [{"w": np.zeros(m)} for m in (0, 1, 10, 11, 30, 31)],
    ),
    "rounded, within bounds": (
        "float[2] p",
        """q = Div(p, threehalves) a = Round(q) c = Abs(a) d = Less(p, threehalves) e = Where(d, c, a)
        f = Max(e, threehalves) g = Min(f, f) h = Sqrt(g) i = Cast<to=6>(h) j = Cast<to=7>(i)
        m = Slice(j, zero1, one1) r = Tile(x, m)""",
        [{"p": p} for p in ([-9.5, 2], [3.75, 0], [30, 30], [0.75, -0.75])],
    ),
    "mask": (
        "int64[4] p",
        "a = Greater(p, one1) r = Compress(x, a)",
        [{"p": [1, 3, 4, 0]}, {"p": [0, 0, 0, 0]}],
    ),
    "branch": (
        "int64 p",
        """a = Mul(p, three) c = Greater(a, three) r = If(c) <
            then_branch = t () => (u) { s = Unsqueeze(a, zero1) u = Tile(x, s) },
            else_branch = e () => (v) { v = Neg(x) }>""",
        [{"p": 1}, {"p": 2}, {"p": -2}],
    ),
    "trips": (
        "int64 p",
        """a = Add(p, one) t = Cast<to=9>(one) l, r = Loop(a, t, x) <
            body = b (int64 i, bool c, float[n] s) => (bool d, float[n] u, float[n] v) {
                d = Identity(c) u = Add(s, s) v = Identity(u) }>""",
        [{"p": 1}, {"p": 3}],
    ),
}
"""What is fed beside `x`, a result `r` whose sizes follow from it, and feeds."""

_CONSTANTS = {
    "zero": np.int64(0), "one": np.int64(1), "three": np.int64(3), "zero1": [0], "one1": [1], "two1": [2], "ten1": [10],
    "last1": [-1], "seven1": np.array([7], np.uint8), "threehalves": np.float32(1.5),
    "tenth1": np.array([0.1]), "two2": [2, 3], "one1f": np.ones(1, np.float32),
}  # fmt: skip


def _model(text: str) -> onnx.ModelProto:
    names = set(re.findall(r"\w+", text))
    return onnx_model(text, {name: np.asarray(value) for name, value in _CONSTANTS.items() if name in names})


def _learning(name: str) -> onnx.ModelProto:
    more, lines, _ = _ONNX[name]
    return _model(f"(float[n] x, {more}) => (y) {{ {lines} y = Add(r, r) }}")


def _feeds(model: onnx.ModelProto, given: Mapping[str, Any]) -> dict[str, Array]:
    found = {}
    for value in model.graph.input:
        dtype = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        found[value.name] = (
            np.asarray(given[value.name], dtype) if value.name in given else RNG.random(12).astype(dtype)
        )
    return found


@pytest.mark.parametrize("name", _ONNX)
def test_operators_of_the_host_get_what_their_step_computes(name: str) -> None:
    model = _learning(name)
    feeds = [_feeds(model, one) for one in _ONNX[name][-1]]
    wanted = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for one, found in zip(feeds, _answers(model, feeds), strict=True):
        for ours, theirs in zip(found, wanted.run(None, one), strict=True):
            np.testing.assert_array_equal(ours, theirs)


_FIRST = "(float[n] x, float[m] z) => (y) { a = ArgMax<keepdims=1>(x) b = ArgMin<keepdims=1>(z) "


@pytest.mark.parametrize(("chain", "ends"), [
    ("l = Max(a, one1) h = Add(a, two1)", lambda a, b: (max(a, 1), a + 2)),  # one result, read by nothing else
    ("l = Min(a, b) h = Max(a, b)", lambda a, b: (min(a, b), max(a, b))),  # what makes two of them one dispatch
    ("l = Min(a, one1) h = Sub(ten1, b)", lambda a, b: (min(a, 1), 10 - b)),
    ("l = Min(a, one1) h = Max(a, b)", lambda a, b: (min(a, 1), max(a, b))),  # all of it, or none
])  # fmt: skip
def test_what_follows_a_dispatch_takes_no_more_of_them(chain: str, ends: Callable[[int, int], Sequence[int]]) -> None:
    model = _model(f"{_FIRST} {chain} c = Slice(x, l, h) y = Relu(c) }}")
    feeds = [{"x": RNG.random(12).astype(np.float32), "z": RNG.random(n).astype(np.float32)} for n in (12, 3, 7)]
    for one, (found,) in zip(feeds, _answers(model, feeds, fewer=0), strict=True):
        low, high = ends(int(one["x"].argmax()), int(one["z"].argmin()))
        np.testing.assert_array_equal(found, one["x"][low:high])


@pytest.mark.parametrize("more", ["", "w = Mul(b, b)", "w = Add(a, one1)"])
def test_what_else_reads_a_dispatch_stays_in_it(more: str) -> None:
    """The number, or the result before it, is data as well."""
    output = ", int64[k] w" if more else ""
    text = f"(float[n] x{output.replace('int64[k] w', 'float[k] z')}) => (y{', w' if more else ''}) {{"
    model = _model(f"{text} a = ArgMax<keepdims=1>(x) b = Max(a, one1) {more} t = Slice(x, zero1, b) y = Relu(t) }}")
    feeds = [{value.name: RNG.random(9).astype(np.float32) for value in model.graph.input} for _ in range(3)]
    for one, (found, *rest) in zip(feeds, _answers(model, feeds, fewer=0), strict=True):
        top = int(one["x"].argmax())
        np.testing.assert_array_equal(found, one["x"][: max(top, 1)])
        assert [int(value[0]) for value in rest] == ([max(top, 1) ** 2 if "Mul" in more else top + 1] if more else [])


@pytest.mark.parametrize("text", [
    "(float[n] x, float[1] p) => (y) { q = Exp(p) a = Cast<to=7>(q) c = Tile(x, a) y = Relu(c) }",
    "(float[n] x, int64[40] p) => (y) { a = Add(p, one1) s = ReduceSum<keepdims=1>(a) c = Tile(x, s) y = Relu(c) }",
])  # fmt: skip
def test_exponentials_and_sums_of_many_stay_a_dispatch(text: str) -> None:
    _check(_model(text), [_feeds(_model(text), {"p": np.full(40, 0) if "40" in text else [1.5]})], fewer=0)


@pytest.mark.parametrize(("steps", "fewer"), [(25, 1), (40, 0)])
def test_long_chains_stay_a_dispatch(steps: int, fewer: int) -> None:
    names = ["p", *(f"a{i}" for i in range(steps))]
    lines = [f"{names[i + 1]} = {'Mul' if i % 2 else 'Sub'}({names[i]}, three)" for i in range(steps)]
    lines += [f"m = Max({names[-1]}, zero)", "k = Min(m, three)", "b = Unsqueeze(k, zero1)", "c = Tile(x, b)"]
    model = _model(f"(float[n] x, int64 p) => (y) {{ {' '.join(lines)} y = Relu(c) }}")
    _check(model, [_feeds(model, {"p": p}) for p in (0, 1, 5, -9)], fewer)


# where else -----------------------------------------------------------------------------------------------------------


def test_a_saved_program_computes_the_same(tmp_path: Path) -> None:
    model = _learning("slice")
    program = _compiled(model)
    program.save(tmp_path / "m.fuse")
    loaded = fuseline.load(tmp_path / "m.fuse")
    for one in _ONNX["slice"][-1]:
        feeds = _feeds(model, one)
        np.testing.assert_array_equal(loaded.run(feeds)["y"], program.run(feeds)["y"])


def test_c_has_no_such_steps(tmp_path: Path) -> None:
    path = tmp_path / "m.mlir"
    path.write_text(_text("clamp", "tensor", "offset", 32))
    with pytest.raises(FuselineError, match="runs on the host") as caught:
        export_c(_compiled(path).session.artifact, tmp_path / "c", "m")
    assert caught.value.code == "E0502"


def test_a_branch_of_the_host_computes_its_own_sizes() -> None:
    text = """(float[n] x, int64[1] p, bool c) => (y) {
        y = If(c) <then_branch = t () => (a) { q = Max(p, one1) a = Tile(x, q) },
                   else_branch = e () => (b) { r = Mul(p, two1) b = Tile(x, r) }> }"""
    model = _model(text)
    x = RNG.random(3).astype(np.float32)
    for target in TARGETS:
        program = _compiled(model, target)
        for p, c, count in ((-2, True, 1), (3, True, 3), (2, False, 4), (0, False, 0)):
            (found,) = program.run({"x": x, "p": np.array([p]), "c": np.array(c)}).values()
            np.testing.assert_array_equal(found, np.tile(x, count))
