"""What is put into a fill is copied there: a fill, then rows of bytes, and no dispatch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fuseline
from fuseline.errors import FuselineError
from fuseline.program.box_rows import ROW_LOOPS
from tests.draws import RNG

TARGETS = ("cpu", "interpreter")
DTYPES = {"f32": np.float32, "f64": np.float64, "i8": np.int8, "i16": np.int16, "i64": np.int64, "i1": np.bool_}


def _program(rank: int, element: str, number: str = "") -> str:
    """An argument put into a fill, at positions and into sizes that are fed; `number`: a constant to fill with."""
    axes = range(rank)
    type_ = f"tensor<{'?x' * rank}{element}>"
    fed = ", ".join(f"%{name}{i}: index" for name in "no" for i in axes)
    indices = "\n".join(f"  %c{i} = arith.constant {i} : index" for i in axes)
    sizes = "\n".join(f"  %d{i} = tensor.dim %x, %c{i} : {type_}" for i in axes)
    fill = f"%s = arith.constant {number} : {element}" if number else f"%s = tensor.extract %v[] : tensor<{element}>"
    listed = {name: ", ".join(f"%{name}{i}" for i in axes) for name in "nod"}
    box = f"[{listed['o']}] [{listed['d']}] [{', '.join('1' for _ in axes)}]"
    return f"""
func.func @main(%x: {type_}, %v: tensor<{element}>, {fed}) -> {type_} {{
{indices}
{sizes}
  {fill}
  %e = tensor.empty({listed["n"]}) : {type_}
  %f = linalg.fill ins(%s : {element}) outs(%e : {type_}) -> {type_}
  %r = tensor.insert_slice %x into %f{box} : {type_} into {type_}
  return %r : {type_}
}}"""


def _compiled(folder: Path, text: str, target: str = "cpu", **options: Any) -> fuseline.CompiledModel:
    path = folder / "model.mlir"
    path.write_text(text)
    return fuseline.compile(path, threads=2, target=target, **options)


def _steps(program: fuseline.CompiledModel) -> tuple[Any, ...]:
    return tuple(program.stats[what] for what in ("dispatches", "fills", "copies"))


def _feeds(rank: int, dtype: Any, most: int) -> tuple[dict[str, Any], Any]:
    """Random sizes and positions, and the answer."""
    sizes = RNG.integers(1, most, rank)
    offsets, behind = RNG.integers(0, 5, rank), RNG.integers(0, 5, rank)
    x, v = ((RNG.standard_normal(shape) * 50).astype(dtype) for shape in (sizes, ()))
    wanted = np.full(sizes + offsets + behind, v)
    wanted[tuple(slice(o, o + s) for o, s in zip(offsets, sizes, strict=True))] = x
    fed = {f"n{i}": size for i, size in enumerate(wanted.shape)} | {f"o{i}": int(o) for i, o in enumerate(offsets)}
    return {"x": x, "v": np.asarray(v, dtype), **fed}, wanted


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("element", DTYPES)
@pytest.mark.parametrize("rank", range(1, ROW_LOOPS + 2))
def test_any_rank_and_element(rank: int, element: str, target: str, tmp_path: Path) -> None:
    program = _compiled(tmp_path, _program(rank, element), target)
    assert _steps(program) == (0, 2 if rank == 1 else 1, 1)
    for most in (2, 6, 6, (3000, 150, 30, 12)[rank - 1]):
        feeds, wanted = _feeds(rank, DTYPES[element], most)
        (found,) = program.run(feeds).values()
        np.testing.assert_array_equal(found, wanted, strict=True)


def test_more_loops_than_the_runtime_has_are_a_dispatch(tmp_path: Path) -> None:
    program = _compiled(tmp_path, _program(ROW_LOOPS + 2, "f32"))
    assert program.stats["dispatches"] == 1
    feeds, wanted = _feeds(ROW_LOOPS + 2, np.float32, 5)
    np.testing.assert_array_equal(program.run(feeds)["result0"], wanted, strict=True)


@pytest.mark.parametrize("number", ["-0.0", "0x7FC00000", "0xFF800000", "1.5"])
def test_constants_around_it(number: str, tmp_path: Path) -> None:
    program = _compiled(tmp_path, _program(2, "f32", number))
    assert _steps(program) == (0, 1, 1)
    value = np.array(int(number, 16), np.uint32).view(np.float32) if "x" in number else np.float32(number)
    x = RNG.standard_normal((3, 4), np.float32)
    wanted = np.full((6, 9), value, np.float32)
    wanted[1:4, 2:6] = x
    feeds = {"x": x, "v": np.float32(0), "n0": 6, "n1": 9, "o0": 1, "o1": 2}
    assert program.run(feeds)["result0"].tobytes() == wanted.tobytes()


@pytest.mark.parametrize("target", TARGETS)
def test_a_box_of_all(target: str, tmp_path: Path) -> None:
    program = _compiled(tmp_path, _program(2, "f32"), target)
    x = RNG.standard_normal((5, 7), np.float32)
    feeds = {"v": np.float32(3), "n0": 5, "n1": 7, "o0": 0, "o1": 0}
    np.testing.assert_array_equal(program.run({"x": x, **feeds})["result0"], x)


@pytest.mark.parametrize(
    "change", [{"o0": 3}, {"o1": 5}, {"n0": 1}, {"n1": 3, "o1": 0}, {"o0": -1}, {"o1": -2}, {"o0": 2**40}]
)
@pytest.mark.parametrize("target", TARGETS)
def test_positions_outside_are_refused(change: dict[str, int], target: str, tmp_path: Path) -> None:
    """Before anything is written."""
    program = _compiled(tmp_path, _program(2, "f32"), target)
    feeds = {"x": np.ones((2, 4), np.float32), "v": np.float32(3), "n0": 4, "n1": 8, "o0": 1, "o1": 2}
    program.run(feeds)
    with pytest.raises(FuselineError) as caught:
        program.run(feeds | change)
    assert caught.value.code == "E0203"


_AROUND = """
func.func @main(%x: tensor<?x6xf32>, %n: index, %i: index) -> {types} {{
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x6xf32>
  %c = arith.constant 2.5 : f32
  %e = tensor.empty(%n) : tensor<?x6xf32>
  %k = tensor.empty(%m) : tensor<?x6xf32>
  %y = linalg.exp ins(%x : tensor<?x6xf32>) outs(%k : tensor<?x6xf32>) -> tensor<?x6xf32>
  %f = linalg.fill ins(%c : f32) outs(%e : tensor<?x6xf32>) -> tensor<?x6xf32>
  %r = tensor.insert_slice %x into %f[%i, 0] [%m, 6] [1, 1] : tensor<?x6xf32> into tensor<?x6xf32>
{rest}
}}"""


def _around(rest: str, count: int) -> str:
    types = ", ".join(["tensor<?x6xf32>"] * count)
    return _AROUND.format(types=f"({types})", rest=rest)


@pytest.mark.parametrize("target", TARGETS)
def test_the_fill_that_others_read_as_well(target: str, tmp_path: Path) -> None:
    """Whoever gets the fill alone has one of his own; whole rows are one stretch of bytes, between two fills."""
    program = _compiled(tmp_path, _around("  return %r, %f : tensor<?x6xf32>, tensor<?x6xf32>", 2), target)
    assert _steps(program) == (0, 3, 1) and program.stats["barriers"] == 0
    x = RNG.standard_normal((3, 6), np.float32)
    put, alone = program.run({"x": x, "n": 8, "i": 4}).values()
    np.testing.assert_array_equal(alone, np.full((8, 6), 2.5, np.float32))
    np.testing.assert_array_equal(put[4:7], x)
    np.testing.assert_array_equal(np.delete(put, [4, 5, 6], 0), alone[:5])


@pytest.mark.parametrize("target", TARGETS)
def test_readers_keep_it_inside(target: str, tmp_path: Path) -> None:
    """What computes with the result takes it in, as before."""
    rest = """  %z = linalg.exp ins(%r : tensor<?x6xf32>) outs(%e : tensor<?x6xf32>) -> tensor<?x6xf32>
  return %z : tensor<?x6xf32>"""
    program = _compiled(tmp_path, _around(rest, 1), target)
    assert _steps(program) == (1, 0, 0)
    x = RNG.standard_normal((3, 6), np.float32)
    wanted = np.full((8, 6), 2.5, np.float32)
    wanted[2:5] = x
    np.testing.assert_allclose(program.run({"x": x, "n": 8, "i": 2})["result0"], np.exp(wanted), rtol=1e-5)


@pytest.mark.parametrize(("fusion", "steps"), [("default", (1, 0, 1)), ("none", (1, 2, 1))])
@pytest.mark.parametrize("target", TARGETS)
def test_a_part_of_a_concat(fusion: str, steps: tuple[int, ...], target: str, tmp_path: Path) -> None:
    """Fusion takes all of it into one dispatch; where it may not, the part is made where it lies in the concat."""
    rest = """  %z = tensor.concat dim(0) %r, %y : (tensor<?x6xf32>, tensor<?x6xf32>) -> tensor<?x6xf32>
  return %z : tensor<?x6xf32>"""
    text = _around(rest, 1).replace("%n: index", "%w: tensor<?xf32>")
    text = text.replace("%m = ", "%n = tensor.dim %w, %c0 : tensor<?xf32>\n  %m = ")
    program = _compiled(tmp_path, text, target, fusion=fusion)
    assert _steps(program) == steps
    x = RNG.standard_normal((3, 6), np.float32)
    wanted = np.full((8, 6), 2.5, np.float32)
    wanted[5:] = x
    (found,) = program.run({"x": x, "w": np.zeros(8, np.float32), "i": 5}).values()
    np.testing.assert_allclose(found, np.concatenate([wanted, np.exp(x)]), rtol=1e-5)


def test_a_saved_program_inserts_without_the_compiler(tmp_path: Path) -> None:
    program = _compiled(tmp_path, _program(3, "i16"))
    program.save(tmp_path / "model.fuse")
    loaded = fuseline.load(tmp_path / "model.fuse", verify=True)
    for most in (3, 40):
        feeds, wanted = _feeds(3, np.int16, most)
        np.testing.assert_array_equal(loaded.run(feeds)["result0"], wanted, strict=True)


def test_its_edges_are_told(tmp_path: Path) -> None:
    program = _compiled(tmp_path, _program(2, "f32"))
    fused = [one for one in program.record.decisions if one.verdict == "fused"]
    assert [one.rule for one in fused] == ["elide-fills"] and not program.record.dispatches
