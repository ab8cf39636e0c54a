"""Whatever a program of linalg and tensor ops computes, compiled code computes to the bit, under every level of fusion:
compared with the interpreter on the program as it was read, before any pass."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fuseline.compilation import compile_program
from fuseline.compile_options import CompileOptions
from fuseline.ir.context import new_context
from fuseline.runtime import Session
from fuseline.source_program import read_program
from fuseline.targets.interpreter import Interpreter
from tests.draws import generator
from tests.programs.random_program import random_program

DEFAULT, MANY = 10, 250
"""Programs per parameter."""


def _expected(path: Path, feeds: dict[str, NDArray[Any]]) -> list[Any]:
    ctx = new_context()
    return list(Interpreter(read_program(path, ctx), ctx.resources).run(feeds).values())


def _check(rng: np.random.Generator, path: Path) -> None:
    text, feeds = random_program(rng)
    path.write_text(text)
    expected = _expected(path, feeds)
    for fusion in ("none", "default", "aggressive"):
        options = CompileOptions(threads=1 + int(rng.integers(3)), fusion=fusion, numerics="strict", poison=True)
        program: Any = compile_program(path, options)
        for found, wanted in zip(Session(program).run(feeds).values(), expected, strict=True):
            np.testing.assert_array_equal(found, wanted, err_msg=f"{fusion}\n{text}", strict=True)


@pytest.mark.parametrize("share", range(4))
def test_some(share: int, tmp_path: Path) -> None:
    rng = generator(f"program {share}")
    for number in range(DEFAULT):
        _check(rng, tmp_path / f"{number}.mlir")


@pytest.mark.slow
@pytest.mark.parametrize("share", range(8))
def test_many(share: int, tmp_path: Path) -> None:
    rng = generator(f"many programs {share}")
    for number in range(MANY):
        _check(rng, tmp_path / f"{number}.mlir")


def test_programs_have_every_operation() -> None:
    """A generator that makes nothing of some operation would find nothing there."""
    names = ("linalg.generic", "linalg.fill", "linalg.transpose", "linalg.matmul", "linalg.index", "tensor.extract ",
             "tensor.collapse_shape", "tensor.expand_shape", "tensor.extract_slice", "tensor.pad", "tensor.concat",
             "tensor.insert_slice", "tensor.dim", '"reduction"', "#1", "f16", "i64", "?")  # fmt: skip
    texts = [random_program(np.random.default_rng(seed))[0] for seed in range(150)]
    counts = {name: sum(name in text for text in texts) for name in names}
    assert min(counts.values()) >= 5, counts
