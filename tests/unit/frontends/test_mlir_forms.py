"""Forms that MLIR programs have besides structured ops: what is read, and gives the numbers that it says; what is
refused, and how."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fuseline
from fuseline.errors import FuselineError
from tests.draws import RNG, generator

_HELD = generator(__name__)
A, B = _HELD.standard_normal((3, 5), dtype=np.float32), _HELD.standard_normal((3, 5), dtype=np.float32)
N = _HELD.integers(-9, 9, (3, 5)).astype(np.int32)


def _result(text: str, feeds: dict[str, Any], tmp_path: Path) -> Any:
    """The one result, on which native code and the interpreter agree."""
    path = tmp_path / "p.mlir"
    path.write_text(text)
    native, reference = (
        list(fuseline.compile(path, target=target, threads=1).run(feeds).values()) for target in ("cpu", "interpreter")
    )
    for got, want in zip(native, reference, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    return native[0]


FORMS: dict[str, tuple[str, dict[str, Any], Any]] = {
    "arithmetic on tensors": (
        """func.func @main(%a: tensor<3x?xf32>, %b: tensor<3x?xf32>) -> tensor<3x?xf32> {
  %s = arith.subf %a, %b : tensor<3x?xf32>
  %m = arith.maximumf %s, %b : tensor<3x?xf32>
  %r = math.tanh %m : tensor<3x?xf32>
  return %r : tensor<3x?xf32>
}""",
        {"a": A, "b": B},
        np.tanh(np.maximum(A - B, B)),
    ),
    "casts and comparisons of tensors": (
        """func.func @main(%a: tensor<3x5xf32>, %n: tensor<3x5xi32>, %k: i1) -> tensor<3x5xf32> {
  %f = arith.sitofp %n : tensor<3x5xi32> to tensor<3x5xf32>
  %c = arith.select %k, %a, %f : tensor<3x5xf32>
  %z = arith.constant dense<0> : tensor<3x5xi32>
  %p = arith.cmpi sgt, %n, %z : tensor<3x5xi32>
  %q = arith.cmpf olt, %c, %a : tensor<3x5xf32>
  %pq = arith.andi %p, %q : tensor<3x5xi1>
  %w = arith.extui %pq : tensor<3x5xi1> to tensor<3x5xi32>
  %v = arith.uitofp %w : tensor<3x5xi32> to tensor<3x5xf32>
  %r = arith.addf %v, %c : tensor<3x5xf32>
  return %r : tensor<3x5xf32>
}""",
        {"a": A, "n": N, "k": False},
        N + ((N > 0) & (N < A)).astype(np.float32),
    ),
    "a tensor made of where its elements are": (
        """func.func @main(%n: index, %t: tensor<4xf32>) -> tensor<?x4xf32> {
  %r = tensor.generate %n {
  ^bb0(%i: index, %j: index):
    %s = arith.addi %i, %j : index
    %w = arith.index_cast %s : index to i32
    %f = arith.sitofp %w : i32 to f32
    %e = tensor.extract %t[%j] : tensor<4xf32>
    %g = arith.mulf %f, %e : f32
    tensor.yield %g : f32
  } : tensor<?x4xf32>
  return %r : tensor<?x4xf32>
}""",
        {"n": 3, "t": A[0, :4]},
        np.add.outer(np.arange(3), np.arange(4)).astype(np.float32) * A[0, :4],
    ),
    "an element replaced": (
        """func.func @main(%a: tensor<3x5xf32>, %s: f32, %i: index) -> tensor<3x5xf32> {
  %c1 = arith.constant 1 : index
  %r = tensor.insert %s into %a[%c1, %i] : tensor<3x5xf32>
  return %r : tensor<3x5xf32>
}""",
        {"a": A, "s": 7.5, "i": 3},
        np.where((np.arange(3) == 1)[:, None] & (np.arange(5) == 3), np.float32(7.5), A),
    ),
    "elements side by side": (
        """func.func @main(%a: tensor<3x5xf32>, %s: f32) -> tensor<2x2xf32> {
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %z = arith.constant 0.5 : f32
  %e = tensor.extract %a[%c1, %c4] : tensor<3x5xf32>
  %p = arith.mulf %e, %s : f32
  %r = tensor.from_elements %e, %p, %z, %s : tensor<2x2xf32>
  return %r : tensor<2x2xf32>
}""",
        {"a": A, "s": 2.0},
        np.array([[A[1, 4], 2 * A[1, 4]], [0.5, 2]], np.float32),
    ),
    "one number everywhere": (
        """func.func @main(%s: f32, %n: index, %a: tensor<?x2xf32>) -> tensor<?x2xf32> {
  %e = tensor.splat %s[%n] : tensor<?x2xf32>
  %r = arith.addf %e, %a : tensor<?x2xf32>
  return %r : tensor<?x2xf32>
}""",
        {"s": 1.25, "n": 3, "a": A[:, :2]},
        A[:, :2] + np.float32(1.25),
    ),
    "a pad with a given number and widths": (
        """func.func @main(%a: tensor<3x5xf32>, %s: f32, %n: index) -> tensor<?x6xf32> {
  %r = tensor.pad %a low[%n, 0] high[1, 1] {
  ^bb0(%i: index, %j: index):
    tensor.yield %s : f32
  } : tensor<3x5xf32> to tensor<?x6xf32>
  return %r : tensor<?x6xf32>
}""",
        {"a": A, "s": -1.5, "n": 2},
        np.pad(A, ((2, 1), (0, 1)), constant_values=-1.5),
    ),
    "a pad with another number in each place": (
        """func.func @main(%a: tensor<3x5xf32>) -> tensor<4x7xf32> {
  %r = tensor.pad %a low[1, 0] high[0, 2] {
  ^bb0(%i: index, %j: index):
    %w = arith.index_cast %j : index to i32
    %f = arith.sitofp %w : i32 to f32
    tensor.yield %f : f32
  } : tensor<3x5xf32> to tensor<4x7xf32>
  return %r : tensor<4x7xf32>
}""",
        {"a": A},
        np.concatenate(
            [
                np.arange(7, dtype=np.float32)[None],
                np.concatenate([A, np.tile(np.array([5, 6], np.float32), (3, 1))], 1),
            ]
        ),
    ),
    "slices that drop some of their units": (
        """func.func @main(%a: tensor<3x5xf32>, %i: index, %j: index) -> tensor<1x5xf32> {
  %w = tensor.expand_shape %a [[0, 1], [2]] output_shape [1, 3, 5] : tensor<3x5xf32> into tensor<1x3x5xf32>
  %x = arith.negf %w : tensor<1x3x5xf32>
  %s = tensor.extract_slice %x[0, %i, 0] [1, 1, 5] [1, 1, 1] : tensor<1x3x5xf32> to tensor<1x5xf32>
  %t = tensor.extract_slice %x[0, %j, 0] [1, 1, 5] [1, 1, 1] : tensor<1x3x5xf32> to tensor<5xf32>
  %u = tensor.insert_slice %t into %x[0, %i, 0] [1, 1, 5] [1, 1, 1] : tensor<5xf32> into tensor<1x3x5xf32>
  %v = tensor.extract_slice %u[0, %i, 0] [1, 1, 5] [1, 1, 1] : tensor<1x3x5xf32> to tensor<1x5xf32>
  %r = arith.addf %s, %v : tensor<1x5xf32>
  return %r : tensor<1x5xf32>
}""",
        {"a": A, "i": 2, "j": 1},
        -(A[2] + A[1])[None],
    ),
    "a slice put in with gaps": (
        """func.func @main(%a: tensor<3x5xf32>, %b: tensor<2x2xf32>, %i: index) -> tensor<3x5xf32> {
  %x = math.tanh %a : tensor<3x5xf32>
  %r = tensor.insert_slice %b into %x[0, %i] [2, 2] [2, 3] : tensor<2x2xf32> into tensor<3x5xf32>
  return %r : tensor<3x5xf32>
}""",
        {"a": A, "b": B[:2, :2], "i": 1},
        np.where(
            np.isin(np.arange(15).reshape(3, 5), (1, 4, 11, 14)),
            np.kron(B[:2, :2], np.ones((2, 3), np.float32))[:3, [0, 0, 0, 3, 3]],
            np.tanh(A),
        ),
    ),
    "an affine map of sizes": (
        """#map = affine_map<(d0)[s0] -> (d0 floordiv 2 + s0 mod 2)>
func.func @main(%a: tensor<?x5xf32>, %n: index) -> tensor<?x5xf32> {
  %c0 = arith.constant 0 : index
  %d = tensor.dim %a, %c0 : tensor<?x5xf32>
  %k = affine.apply #map(%d)[%n]
  %f = tensor.extract_slice %a[%n, 0] [%k, 5] [1, 1] : tensor<?x5xf32> to tensor<?x5xf32>
  %r = arith.negf %f : tensor<?x5xf32>
  return %r : tensor<?x5xf32>
}""",
        {"a": A, "n": 1},
        -A[1:3],
    ),
    "blocks in a row, calls and barriers": (
        """util.func public @main(%a: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %0 = util.optimization_barrier %a : tensor<3x5xf32>
  cf.br ^bb1(%0 : tensor<3x5xf32>)
^bb1(%x: tensor<3x5xf32>):
  %1 = util.call @twice(%x) : (tensor<3x5xf32>) -> tensor<3x5xf32>
  %2 = util.call @twice(%1) : (tensor<3x5xf32>) -> tensor<3x5xf32>
  %3 = iree_tensor_ext.compute_barrier.end %2 : tensor<3x5xf32> -> tensor<3x5xf32>
  util.return %3 : tensor<3x5xf32>
}
util.func private @twice(%a: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %r = arith.addf %a, %a : tensor<3x5xf32>
  util.return %r : tensor<3x5xf32>
}""",
        {"a": A},
        4 * A,
    ),
    "globals and constants": (
        """util.global private @w = dense<2.0> : tensor<3x5xf32>
util.global private @v {noinline} = dense<3.0> : tensor<3x5xf32>
util.func public @main(%a: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %w = util.global.load @w : tensor<3x5xf32>
  %p = util.global.address @v : !util.ptr<tensor<3x5xf32>>
  %v = util.global.load.indirect %p : !util.ptr<tensor<3x5xf32>> -> tensor<3x5xf32>
  %c = util.unfoldable_constant dense<5.0> : tensor<3x5xf32>
  %0 = arith.mulf %a, %w : tensor<3x5xf32>
  %1 = arith.addf %0, %v : tensor<3x5xf32>
  %2 = arith.addf %1, %c : tensor<3x5xf32>
  util.return %2 : tensor<3x5xf32>
}""",
        {"a": A},
        A * 2 + 8,
    ),
    "a loop of so many iterations": (
        """func.func @main(%a: tensor<3x5xf32>, %k: i1) -> (tensor<5xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c7 = arith.constant 7 : i32
  %c2 = arith.constant 2 : i32
  %e = arith.constant dense<0.0> : tensor<5xf32>
  %r, %o = scf.for %i = %c0 to %c3 step %c1 iter_args(%s = %e, %other = %e) -> (tensor<5xf32>, tensor<5xf32>) {
    %x = tensor.extract_slice %a[%i, 0] [1, 5] [1, 1] : tensor<3x5xf32> to tensor<5xf32>
    %y = arith.addf %x, %s : tensor<5xf32>
    %z = scf.if %k -> (tensor<5xf32>) {
      %w = scf.for %j = %c2 to %c7 step %c2 iter_args(%v = %y) -> (tensor<5xf32>) : i32 {
        %t = math.tanh %v : tensor<5xf32>
        scf.yield %t : tensor<5xf32>
      }
      scf.yield %w : tensor<5xf32>
    } else {
      scf.yield %other : tensor<5xf32>
    }
    scf.yield %z, %s : tensor<5xf32>, tensor<5xf32>
  }
  return %r : tensor<5xf32>
}""",
        {"a": A, "k": True},
        np.tanh(np.tanh(np.tanh(A[2] + np.tanh(np.tanh(np.tanh(A[1] + np.tanh(np.tanh(np.tanh(A[0]))))))))),
    ),
    "a loop of no iteration": (
        """func.func @main(%a: tensor<3x5xf32>) -> (tensor<3x5xf32>) {
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c1 to %c1 step %c1 iter_args(%s = %a) -> (tensor<3x5xf32>) {
    %z = math.tanh %s : tensor<3x5xf32>
    scf.yield %z : tensor<3x5xf32>
  }
  %n = arith.negf %r : tensor<3x5xf32>
  return %n : tensor<3x5xf32>
}""",
        {"a": A},
        -A,
    ),
    "regions that somebody formed": (
        """util.func public @main(%a: tensor<3x?xf32>) -> tensor<3x?xf32> {
  %c1 = arith.constant 1 : index
  %d = tensor.dim %a, %c1 : tensor<3x?xf32>
  %0 = flow.dispatch.region[%d] -> (tensor<3x?xf32>{%d}) {
    %1 = math.exp %a : tensor<3x?xf32>
    flow.return %1 : tensor<3x?xf32>
  } count(%w: index) -> (index, index, index) {
    %c2 = arith.constant 2 : index
    flow.return %w, %c2, %c2 : index, index, index
  }
  util.return %0 : tensor<3x?xf32>
}""",
        {"a": A},
        np.exp(A),
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_a_form_gives_the_numbers_that_it_says(name: str, tmp_path: Path):
    text, feeds, expected = FORMS[name]
    np.testing.assert_allclose(_result(text, feeds, tmp_path), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("taken", [True, False])
def test_either_side_of_a_branch(taken: bool, tmp_path: Path):
    text = """func.func @main(%a: tensor<3x5xf32>, %k: i1) -> (tensor<3x5xf32>, f32) {
  %c0 = arith.constant 0 : index
  %r:2 = scf.if %k -> (tensor<3x5xf32>, f32) {
    %e = tensor.extract %a[%c0, %c0] : tensor<3x5xf32>
    scf.yield %a, %e : tensor<3x5xf32>, f32
  } else {
    %x = math.exp %a : tensor<3x5xf32>
    %y = scf.if %k -> tensor<3x5xf32> {
      scf.yield %a : tensor<3x5xf32>
    } else {
      scf.yield %x : tensor<3x5xf32>
    }
    %e = tensor.extract %x[%c0, %c0] : tensor<3x5xf32>
    scf.yield %y, %e : tensor<3x5xf32>, f32
  }
  return %r#0, %r#1 : tensor<3x5xf32>, f32
}"""
    np.testing.assert_allclose(_result(text, {"a": A, "k": taken}, tmp_path), A if taken else np.exp(A), rtol=1e-5)


REFUSED = {
    "unknown op": ("  %0 = hal.tensor.import %a : tensor<4xf32>", "hal.tensor.import"),
    "unknown attribute": (
        "  %0 = arith.addf %a, %a {x = #iree_encoding.testing<>} : tensor<4xf32>",
        "iree_encoding.testing",
    ),
    "unknown type": ("  %0 = arith.addf %a, %a : !hal.buffer_view", "hal.buffer_view"),
    "float of 8 bits": ("  %0 = tensor.empty() : tensor<4xf8E4M3FNUZ>", "f8E4M3FNUZ"),
    "integer of 4 bits": ("  %0 = arith.constant dense<1> : tensor<4xi4>", "i4"),
    "signed integer": ("  %0 = tensor.empty() : tensor<4xsi8>", "si8"),
    "complex number": ("  %0 = tensor.empty() : tensor<4xcomplex<f32>>", "complex<f32>"),
    "vector": ("  %0 = arith.constant dense<1.0> : vector<4xf32>", "vector<4xf32>"),
    "encoding": ("  %0 = tensor.empty() : tensor<4xf32, 1 : i32>", "encoding"),
    "tensor of unknown rank": ("  %0 = tensor.cast %a : tensor<4xf32> to tensor<*xf32>", "tensor<*xf32>"),
    "global that changes": ("  %0 = util.global.load @m : tensor<4xf32>", "@m"),
    "global without a value": ("  %0 = util.global.load @g : tensor<4xf32>", "@g"),
    "store": ("  util.global.store %a, @m : tensor<4xf32>", "util.global.store"),
    "loop of blocks": ("  cf.br ^bb1\n^bb1:\n  cf.br ^bb1\n^bb2:", "cf.br"),
    "choice of blocks": ("  %k = arith.constant true\n  cf.cond_br %k, ^bb1, ^bb1\n^bb1:", "cf.cond_br"),
    "loop without a step": (
        """  %z = arith.constant 0 : index
  %q = scf.for %i = %z to %z step %z iter_args(%s = %a) -> (tensor<4xf32>) {
    scf.yield %s : tensor<4xf32>
  }""",
        "steps of 0",
    ),
    "loop that is too long": (
        """  %z = arith.constant -9223372036854775808 : index
  %o = arith.constant 1 : index
  %n = arith.constant 9223372036854775807 : index
  %q = scf.for %i = %z to %n step %o iter_args(%s = %a) -> (tensor<4xf32>) {
    scf.yield %s : tensor<4xf32>
  }""",
        "too many",
    ),
    "call of itself": ("  %0 = func.call @main(%a) : (tensor<4xf32>) -> tensor<4xf32>", "calls itself"),
    "division on one side": (
        """  %c = arith.constant 0 : index
  %d = tensor.dim %a, %c : tensor<4xf32>
  %k = arith.cmpi eq, %d, %c : index
  %q = scf.if %k -> index {
    %s = arith.divsi %c, %d : index
    scf.yield %s : index
  } else {
    scf.yield %c : index
  }""",
        "arith.divsi",
    ),
}


def test_functions_that_the_program_does_not_reach_are_not_looked_at(tmp_path: Path):
    path = tmp_path / "p.mlir"
    call = "%r = func.call @{1}(%a) : (tensor<4xi4>) -> tensor<4xi4>"
    other = (
        f"func.func private @{{0}}(%a: tensor<4xi4>) -> tensor<4xi4> {{{{\n  {call}\n  return %r : tensor<4xi4>\n}}}}\n"
    )
    main = (
        "func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n  %r = math.exp %a : tensor<4xf32>\n  return %r : "
        "tensor<4xf32>\n}\n"
    )
    path.write_text(main + other.format("one", "two") + other.format("two", "one"))
    assert len(fuseline.compile(path, target="null").record.dispatches) == 1


def test_a_parallel_loop_that_writes_nowhere_is_refused(tmp_path: Path):
    path = tmp_path / "p.mlir"
    path.write_text("""func.func @main(%a: tensor<4x3xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%a : tensor<4x3xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%x: f32, %o: f32):
    linalg.yield %x : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}""")
    with pytest.raises(FuselineError, match=r"E0302.*parallel loop d1"):
        fuseline.compile(path, target="null")


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_supported_is_refused_by_name_and_line(name: str, tmp_path: Path):
    lines, told = REFUSED[name]
    path = tmp_path / "p.mlir"
    globals_ = "util.global private mutable @m = dense<1.0> : tensor<4xf32>\nutil.global private @g : tensor<4xf32>\n"
    path.write_text(
        f"{globals_}func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {{\n{lines}\n  return %a : tensor<4xf32>\n}}\n"
    )
    with pytest.raises(FuselineError) as caught:
        fuseline.compile(path, target="null")
    assert caught.value.code == "E0306", caught.value
    assert told in str(caught.value)
    assert "p.mlir:" in str(caught.value.node)


def test_a_dispatch_of_an_executable_that_is_not_there_is_refused(tmp_path: Path):
    path = tmp_path / "p.mlir"
    call = "flow.dispatch @elsewhere::@entry(%a) : (tensor<4xf32>) -> tensor<4xf32>"
    path.write_text(
        f"func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {{\n  %0 = {call}\n  return %0 : tensor<4xf32>\n}}\n"
    )
    with pytest.raises(FuselineError, match=r"E0302 \[p.mlir:2:\d+\].*@elsewhere"):
        fuseline.compile(path, target="null")


@pytest.mark.parametrize(("at", "count", "step"), [(1, 2, 1), (1, 2, 2), (0, 1, 3)])
def test_a_slice_put_in_is_looked_at_before_anything_runs(at: int, count: int, step: int, tmp_path: Path):
    text = """func.func @main(%a: tensor<?xf32>, %b: tensor<5xf32>, %i: index, %n: index, %s: index) -> tensor<5xf32> {
  %r = tensor.insert_slice %a into %b[%i] [%n] [%s] : tensor<?xf32> into tensor<5xf32>
  return %r : tensor<5xf32>
}"""
    feeds: dict[str, Any] = {"a": A[0, :count], "b": B[0], "i": at, "n": count, "s": step}
    expected = B[0].copy()
    expected[at : at + count * step : step] = A[0, :count]
    np.testing.assert_array_equal(_result(text, feeds, tmp_path), expected)
    for wrong in ({"n": count + 1}, {"s": 0}, {"i": 5}):
        with pytest.raises(FuselineError, match="E0203"):
            _result(text, feeds | wrong, tmp_path)


@pytest.mark.parametrize(("kind", "dtype"), [("index", np.int64), ("i32", np.int32), ("i8", np.int8)])
@pytest.mark.parametrize("size", ["7", "?"])
def test_places_that_data_tells_are_moved_inside(kind: str, dtype: Any, size: str, tmp_path: Path):
    cast = "" if kind == "index" else f"%p = arith.index_cast %at : {kind} to index\n"
    position = "%at" if kind == "index" else "%p"
    text = f"""func.func @main(%t: tensor<3x{size}xf32>, %i: tensor<?x{kind}>) -> (tensor<?xf32>, tensor<4xf32>) {{
  %c0 = arith.constant 0 : index
  %n = tensor.dim %i, %c0 : tensor<?x{kind}>
  %e = tensor.empty(%n) : tensor<?xf32>
  %x = math.tanh %t : tensor<3x{size}xf32>
  %r = linalg.generic {{indexing_maps = [affine_map<(d) -> (d)>, affine_map<(d) -> (d)>],
      iterator_types = ["parallel"]}}
      ins(%i : tensor<?x{kind}>) outs(%e : tensor<?xf32>) {{
  ^bb0(%at: {kind}, %o: f32):
    {cast}%c1 = arith.constant 1 : index
    %v = tensor.extract %x[%c1, {position}] : tensor<3x{size}xf32>
    linalg.yield %v : f32
  }} -> tensor<?xf32>
  %g = tensor.generate {{
  ^bb0(%j: index):
    %at = tensor.extract %i[%j] : tensor<?x{kind}>
    {cast}%s = arith.addi %j, {position} : index
    %v = tensor.extract %x[%c0, %s] : tensor<3x{size}xf32>
    tensor.yield %v : f32
  }} : tensor<4xf32>
  return %r, %g : tensor<?xf32>, tensor<4xf32>
}}"""
    table, at = RNG.standard_normal((3, 7), dtype=np.float32), np.array([0, 6, 7, -1, 100, -100, 3], dtype)
    path = tmp_path / "p.mlir"
    path.write_text(text)
    for target in ("cpu", "interpreter"):
        first, second = fuseline.compile(path, target=target, threads=1).run({"t": table, "i": at}).values()
        np.testing.assert_allclose(first, np.tanh(table)[1, np.clip(at.astype(int), 0, 6)], rtol=1e-5)
        np.testing.assert_allclose(
            second, np.tanh(table)[0, np.clip(np.arange(4) + at[:4].astype(int), 0, 6)], rtol=1e-5
        )
        with pytest.raises(FuselineError, match="E0203"):
            fuseline.compile(path, target=target, threads=1).run({"t": table, "i": at[:2]})


def test_elements_at_places_that_are_given_or_computed(tmp_path: Path):
    path = tmp_path / "p.mlir"
    path.write_text("""func.func @main(%t: tensor<5xf32>, %i: i32, %k: index, %q: tensor<3xi32>) -> (f32, f32, f32) {
  %p = arith.index_cast %i : i32 to index
  %c1 = arith.constant 1 : index
  %a = tensor.extract %t[%p] : tensor<5xf32>
  %b = tensor.extract %t[%k] : tensor<5xf32>
  %z = tensor.extract %q[%c1] : tensor<3xi32>
  %at = arith.index_cast %z : i32 to index
  %c = tensor.extract %t[%at] : tensor<5xf32>
  return %a, %b, %c : f32, f32, f32
}""")
    for target in ("cpu", "interpreter"):
        program = fuseline.compile(path, target=target, threads=1)
        for i, k, z in ((1, 2, 3), (9, 0, -9), (-9, 4, 9)):
            got = program.run({"t": A[0], "i": i, "k": k, "q": np.array([0, z, 0], np.int32)})
            assert [float(value) for value in got.values()] == [
                float(A[0, min(max(position, 0), 4)]) for position in (i, k, z)
            ]
        with pytest.raises(FuselineError, match="E0203.*k = 5"):
            program.run({"t": A[0], "i": 0, "k": 5, "q": np.zeros(3, np.int32)})


def _reduced(body: str, second: str = "(i, j)") -> str:
    maps = ", ".join(f"affine_map<(i, j) -> {part}>" for part in ("(i, j)", second, "(i)"))
    types = ("tensor<3x5xf32>" if second == "(i, j)" else "tensor<5xf32>") + ", tensor<3xf32>"
    return f"""func.func @main(%a: tensor<3x5xf32>, %o: {types.split(", ")[0]}, %t: tensor<3xf32>) -> ({types}) {{
  %r:2 = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "reduction"]}}
      ins(%a : tensor<3x5xf32>) outs(%o, %t : {types}) {{
  ^bb0(%x: f32, %y: f32, %z: f32):
    %e = math.exp %x : f32
    %s = arith.addf %e, %z : f32
    linalg.yield {body} : f32, f32
  }} -> ({types})
  return %r#0, %r#1 : {types}
}}"""


def test_a_reduction_with_a_result_per_iteration(tmp_path: Path):
    path = tmp_path / "p.mlir"
    path.write_text(_reduced("%e, %s"))
    for target in ("cpu", "interpreter"):
        each, total = fuseline.compile(path, target=target, threads=1).run({"a": A, "o": B, "t": B[:, 0]}).values()
        np.testing.assert_allclose(each, np.exp(A), rtol=1e-5)
        np.testing.assert_allclose(total, np.exp(A).sum(1) + B[:, 0], rtol=1e-5)


@pytest.mark.parametrize("text", [_reduced("%s, %s"), _reduced("%y, %s"), _reduced("%e, %s", "(j)")])
def test_a_running_total_as_a_result_is_refused(text: str, tmp_path: Path):
    path = tmp_path / "p.mlir"
    path.write_text(text)
    with pytest.raises(FuselineError) as caught:
        fuseline.compile(path, target="null")
    assert caught.value.code in ("E0306", "E0302") and str(caught.value.node).startswith("p.mlir:2:")


MALFORMED = {
    "a dimension too high": "%c = arith.constant 7 : index\n  %d = tensor.dim %a, %c : tensor<4x?xf32>",
    "a dimension below 0": "%c = arith.constant -1 : index\n  %d = tensor.dim %a, %c : tensor<4x?xf32>",
    "an index too few": "%d = tensor.extract %a[%i] : tensor<4x?xf32>",
    "an index too many": "%d = tensor.insert %s into %a[%i, %i, %i] : tensor<4x?xf32>",
    "a map that divides by zero": "%d = affine.apply affine_map<(d0) -> (d0 floordiv 0)>(%i)",
    "a map that divides by less": "%d = affine.apply affine_map<(d0) -> (d0 mod -2)>(%i)",
    "a division of a size by zero": "%c = arith.constant 0 : index\n  %d = arith.divui %i, %c : index",
    "a remainder of zero": "%c = arith.constant 0 : index\n  %d = arith.remsi %i, %c : index",
}


@pytest.mark.parametrize("name", MALFORMED)
def test_what_makes_no_sense_is_refused_by_line(name: str, tmp_path: Path):
    path = tmp_path / "p.mlir"
    arguments = "%a: tensor<4x?xf32>, %i: index, %s: f32"
    path.write_text(
        f"func.func @main({arguments}) -> tensor<4x?xf32> {{\n  {MALFORMED[name]}\n  return %a : tensor<4x?xf32>\n}}\n"
    )
    with pytest.raises(FuselineError, match=r"E0302 \[p.mlir:[23]:3\]"):
        fuseline.compile(path, target="null")


def test_a_computed_dimension_is_refused(tmp_path: Path):
    path = tmp_path / "p.mlir"
    path.write_text(
        "func.func @main(%a: tensor<4x?xf32>, %i: index) -> index {\n  %d = tensor.dim %a, %i : tensor<4x?xf32>\n  "
        "return %d : index\n}\n"
    )
    with pytest.raises(FuselineError, match=r"E0306 \[p.mlir:2:3\].*which dimension"):
        fuseline.compile(path, target="null")
