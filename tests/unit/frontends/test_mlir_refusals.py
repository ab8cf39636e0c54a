"""MLIR programs that are refused, by name and line: what is not supported, and what makes no sense."""

from __future__ import annotations

from pathlib import Path

import pytest

import fuseline
from fuseline.errors import FuselineError

REFUSED = {
    "unknown op": ("  %0 = hal.tensor.import %a : tensor<4xf32>", "hal.tensor.import"),
    "unknown attribute": (
        "  %0 = arith.addf %a, %a {x = #iree_encoding.testing<>} : tensor<4xf32>",
        "iree_encoding.testing",
    ),
    "unknown type": ("  %0 = arith.addf %a, %a : !hal.buffer_view", "hal.buffer_view"),
    "float of 8 bits": ("  %0 = tensor.empty() : tensor<4xf8E4M3FNUZ>", "f8E4M3FNUZ"),
    "integer of 12 bits": ("  %0 = arith.constant dense<1> : tensor<4xi12>", "i12"),
    "integer of 4 bits that is shifted": (
        "  %0 = arith.constant dense<1> : tensor<4xi4>\n  %1 = arith.shrsi %0, %0 : tensor<4xi4>",
        "2 to 7 bits",
    ),
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
