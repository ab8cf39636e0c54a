"""No text makes the reader fail without a code."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fuseline
from fuseline.errors import FuselineError
from fuseline.frontends.mlir import read_mlir
from fuseline.ir.context import new_context
from tests.properties.mutated_mlir import corpus, failure, mutated

PROGRAM = "func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {{\n  {}\n  return %a : tensor<4xf32>\n}}\n"


def test_mutations_change_programs_and_are_the_same_again():
    programs = corpus()
    assert len(programs) > 50
    changed = [mutated(programs, seed) for seed in range(100)]
    assert changed == [mutated(programs, seed) for seed in range(100)]
    assert len(set(changed) - set(programs)) > 60  # about 80 of any 100, whichever programs there are


def test_mutated_programs_are_refused_with_a_code_or_compiled(tmp_path: Path):
    programs = corpus()
    assert [
        (seed, found) for seed in range(100) if (found := failure(mutated(programs, seed), tmp_path)) is not None
    ] == []


@pytest.mark.slow
def test_many_mutated_programs_are_refused_with_a_code_or_compiled(tmp_path: Path):
    programs = corpus()
    assert [
        (seed, found) for seed in range(1000, 6000) if (found := failure(mutated(programs, seed), tmp_path)) is not None
    ] == []


@pytest.mark.parametrize("line", ["\x00", '%0 = "arith.addf"(%a) : (tensor<4xf32>) -> f32', "%é = arith"])
def test_strange_characters(line: str, tmp_path: Path):
    path = tmp_path / "p.mlir"
    path.write_text(PROGRAM.format(line), encoding="utf-8")
    with pytest.raises(FuselineError, match="E03"):
        read_mlir(path, new_context())


def test_a_place_may_have_any_name(tmp_path: Path):
    path = tmp_path / "p.mlir"
    line = '%r = math.exp %a : tensor<4xf32> loc("x\\00y":1:2)'
    path.write_text(PROGRAM.format(line).replace("return %a", "return %r"))
    program = fuseline.compile(path, threads=1)
    program.save(tmp_path / "p.fuse")
    a = np.array([0.5, -1, 2, 0], np.float32)
    np.testing.assert_allclose(fuseline.load(tmp_path / "p.fuse").run({"a": a})["result0"], np.exp(a), rtol=1e-6)


@pytest.mark.parametrize(
    "data", [b"func.func @f\xff() { return }", b"\xff\xfe", "func.func @f() { return }".encode("utf-16")]
)
def test_bytes_that_are_no_text(data: bytes, tmp_path: Path):
    path = tmp_path / "p.mlir"
    path.write_bytes(data)
    with pytest.raises(FuselineError, match="E0101|E0301"):
        read_mlir(path, new_context())
