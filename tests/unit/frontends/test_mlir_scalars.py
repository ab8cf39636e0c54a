"""Scalars of MLIR programs: given, taken out of tensors, computed; read by bodies, fills and slices, returned."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fuseline
from fuseline.errors import FuselineError
from tests.draws import RNG, generator

A = generator(__name__).standard_normal((5, 7), dtype=np.float32)
SHIFT = """
  %e = tensor.empty() : tensor<5x7xf32>
  %r = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}}
      ins({0} : tensor<5x7xf32>) outs(%e : tensor<5x7xf32>) {{
  ^bb0(%x: f32, %o: f32):
    %y = arith.mulf %x, {1} : f32
    linalg.yield %y : f32
  }} -> tensor<5x7xf32>"""


def _program(text: str, tmp_path: Path, target: str = "cpu", **options: Any) -> fuseline.Program:
    path = tmp_path / "p.mlir"
    path.write_text(text)
    return fuseline.compile(path, target=target, threads=1, **options)


def _results(text: str, feeds: dict[str, Any], tmp_path: Path) -> list[Any]:
    """What the interpreter and native code give alike, fused or not."""
    ran = [_program(text, tmp_path, target).run(feeds) for target in ("interpreter", "cpu")]
    ran.append(_program(text, tmp_path, fusion="none").run(feeds))
    for other in ran[1:]:
        for name, value in ran[0].items():
            np.testing.assert_allclose(other[name], value, rtol=1e-6)
            assert other[name].dtype == value.dtype
    return list(ran[1].values())


def test_a_number_that_the_caller_gives(tmp_path: Path):
    text = (
        f"func.func @main(%a: tensor<5x7xf32>, %s: f32) -> tensor<5x7xf32> {{{SHIFT.format('%a', '%s')}\n  return "
        f"%r : tensor<5x7xf32>\n}}"
    )
    for given in (2.5, np.float32(2.5), np.array(2.5, np.float32)):
        (r,) = _results(text, {"a": A, "s": given}, tmp_path)
        np.testing.assert_allclose(r, A * np.float32(2.5), rtol=1e-6)
    program = _program(text, tmp_path)
    for wrong in (np.float64(2.5), np.array([2.5], np.float32), "x", True, None):
        with pytest.raises(FuselineError, match="E020[34]"):
            program.run({"a": A, "s": wrong})


@pytest.mark.parametrize(
    ("type_", "given", "refused"), [("i8", -5, 200), ("i1", True, 1), ("i64", 1 << 40, 1.5), ("f64", 3, True)]
)
def test_python_numbers_are_taken_where_the_type_holds_them(type_: str, given: Any, refused: Any, tmp_path: Path):
    program = _program(f"func.func @main(%s: {type_}) -> {type_} {{ return %s : {type_} }}", tmp_path)
    assert program.run({"s": given})["result0"] == given
    with pytest.raises(FuselineError, match="E0204"):
        program.run({"s": refused})


def test_an_element_of_a_result_is_an_edge(tmp_path: Path):
    text = f"""func.func @main(%a: tensor<5x7xf32>) -> tensor<5x7xf32> {{
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %i = tensor.empty() : tensor<5x7xf32>
  %p = linalg.exp ins(%a : tensor<5x7xf32>) outs(%i : tensor<5x7xf32>) -> tensor<5x7xf32>
  %s = tensor.extract %p[%c3, %c1] : tensor<5x7xf32>
  %t = arith.addf %s, %s : f32
  {SHIFT.format("%p", "%t")}
  return %r : tensor<5x7xf32>
}}"""
    (r,) = _results(text, {"a": A}, tmp_path)
    np.testing.assert_allclose(r, np.exp(A) * 2 * np.exp(A[3, 1]), rtol=1e-5)
    record = _program(text, tmp_path).record
    exp = next(name for name, node in record.fusion_nodes.items() if any(node_.endswith(":5") for node_ in node.nodes))
    assert sum(decision.producer == exp for decision in record.decisions) == 2, (
        "one edge to the product, one to what takes the element out"
    )


def test_an_index_says_where_and_how_much(tmp_path: Path):
    text = """func.func @main(%a: tensor<5x7xf32>, %o: index, %n: index) -> (tensor<?x7xf32>, index) {
  %f = tensor.extract_slice %a[%o, 0] [%n, 7] [1, 1] : tensor<5x7xf32> to tensor<?x7xf32>
  %e = tensor.empty(%n) : tensor<?x7xf32>
  %r = linalg.exp ins(%f : tensor<?x7xf32>) outs(%e : tensor<?x7xf32>) -> tensor<?x7xf32>
  %sum = arith.addi %o, %n : index
  return %r, %sum : tensor<?x7xf32>, index
}"""
    for o, n in ((0, 5), (2, 3), (4, 1), (np.int32(1), 2)):
        r, total = _results(text, {"a": A, "o": o, "n": n}, tmp_path)
        np.testing.assert_allclose(r, np.exp(A[o : o + n]), rtol=1e-5)
        assert total == o + n
    program = _program(text, tmp_path)
    for feeds, code in (
        ({"o": 3, "n": 3}, "E0203"),
        ({"o": -1, "n": 2}, "E0203"),
        ({"o": 1.5, "n": 2}, "E0204"),
        ({"o": np.array([1]), "n": 2}, "E020[34]"),
    ):
        with pytest.raises(FuselineError, match=code):
            program.run({"a": A, **feeds})


def test_a_size_that_the_program_computes(tmp_path: Path):
    """Read out of a tensor, so that only the run knows it: what follows is as large as it says."""
    text = """func.func @main(%a: tensor<5x7xf32>, %i: tensor<3xi64>, %k: i32) -> tensor<?x7xf32> {
  %c2 = arith.constant 2 : index
  %c1 = arith.constant 1 : index
  %v = tensor.extract %i[%c2] : tensor<3xi64>
  %n = arith.index_cast %v : i64 to index
  %o = arith.index_cast %k : i32 to index
  %m = arith.subi %n, %c1 : index
  %f = tensor.extract_slice %a[%o, 0] [%m, 7] [1, 1] : tensor<5x7xf32> to tensor<?x7xf32>
  %e = tensor.empty(%m) : tensor<?x7xf32>
  %r = linalg.exp ins(%f : tensor<?x7xf32>) outs(%e : tensor<?x7xf32>) -> tensor<?x7xf32>
  return %r : tensor<?x7xf32>
}"""
    for n, o in ((3, 1), (6, 0), (2, 4)):
        (r,) = _results(text, {"a": A, "i": np.array([9, 9, n]), "k": np.int32(o)}, tmp_path)
        np.testing.assert_allclose(r, np.exp(A[o : o + n - 1]), rtol=1e-5)
    program = _program(text, tmp_path)
    for n, o in ((7, 0), (3, 4), (-2, 0), (3, -1)):
        with pytest.raises(FuselineError, match="E0203"):
            program.run({"a": A, "i": np.array([0, 0, n]), "k": o})


def test_a_fill_with_a_given_number_over_a_given_tensor(tmp_path: Path):
    text = """func.func @main(%a: tensor<?x?xf32>, %b: tensor<?x?xf32>, %c: tensor<?x?xf32>, %z: f32)
        -> (tensor<?x?xf32>, tensor<?x?xf32>) {
  %f = linalg.fill ins(%z : f32) outs(%c : tensor<?x?xf32>) -> tensor<?x?xf32>
  %r = linalg.matmul ins(%a, %b : tensor<?x?xf32>, tensor<?x?xf32>) outs(%f : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %r, %f : tensor<?x?xf32>, tensor<?x?xf32>
}"""
    a, b, c = (RNG.standard_normal(shape, dtype=np.float32) for shape in ((3, 5), (5, 9), (3, 9)))
    r, f = _results(text, {"a": a, "b": b, "c": c, "z": 1.5}, tmp_path)
    np.testing.assert_allclose(r, a @ b + 1.5, rtol=1e-5)
    assert (f == 1.5).all()


def test_a_fill_over_an_argument_starts_a_product_anew(tmp_path: Path):
    text = """func.func @main(%a: tensor<?x?xf32>, %b: tensor<?x?xf32>, %c: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %z = arith.constant 12.0 : f32
  %f = linalg.fill ins(%z : f32) outs(%c : tensor<?x?xf32>) -> tensor<?x?xf32>
  %r = linalg.matmul ins(%a, %b : tensor<?x?xf32>, tensor<?x?xf32>) outs(%f : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %r : tensor<?x?xf32>
}"""
    a, b, c = (RNG.standard_normal(shape, dtype=np.float32) for shape in ((3, 5), (5, 9), (3, 9)))
    (r,) = _results(text, {"a": a, "b": b, "c": c}, tmp_path)
    np.testing.assert_allclose(r, a @ b + 12, rtol=1e-5)


def test_a_scalar_where_no_op_takes_one_is_refused(tmp_path: Path):
    text = """func.func @main(%a: tensor<5xf32>, %k: f32) -> tensor<5xf32> {
  %r = func.call @other(%a, %k) : (tensor<5xf32>, f32) -> tensor<5xf32>
  return %r : tensor<5xf32>
}
func.func private @other(tensor<5xf32>, f32) -> tensor<5xf32>
"""
    with pytest.raises(FuselineError, match="E0305"):
        _program(text, tmp_path)


def test_the_size_of_an_argument_and_an_argument_of_that_name_are_two(tmp_path: Path):
    text = """func.func @main(%a: tensor<?xf32>, %a_0: index) -> tensor<?xf32> {
  %f = tensor.extract_slice %a[%a_0] [2] [1] : tensor<?xf32> to tensor<2xf32>
  %r = tensor.cast %f : tensor<2xf32> to tensor<?xf32>
  return %r : tensor<?xf32>
}"""
    (r,) = _results(text, {"a": A[0], "a_0": 3}, tmp_path)
    np.testing.assert_array_equal(r, A[0, 3:5])
