"""A case of a wish: compiled for the CPU, run on random numbers and held against the interpreter, which fuses
nothing."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import fuseline
from tests.draws import RNG

RELATIVE = {2: 8e-3, 4: 2e-5, 8: 1e-12}
"""What floats may differ by, of the largest magnitude of a result, by bytes of an element."""


def compiled(
    model: onnx.ModelProto | Path, sizes: dict[str, int] | None = None, **options: Any
) -> fuseline.CompiledModel:
    """The program, whose outputs are those of the interpreter; symbolic extents are what `sizes` says of them."""
    asked: dict[str, Any] = {"threads": 2, "cache": False, **options}
    program = fuseline.compile(model, **asked)
    reference = fuseline.compile(model, target="interpreter", fusion="none", cache=False)
    feeds = {one.name: _random(one, sizes or {}) for one in reference.inputs}
    found = program.run(feeds)
    for name, expected in reference.run(feeds).items():
        agree(found[name], expected, name)
    return program


def agree(found: Any, expected: Any, name: str = "") -> None:
    """Equal, or for floats as near as their type allows."""
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype), name
    if expected.dtype.kind in "biu":
        np.testing.assert_array_equal(found, expected, err_msg=name)
        return
    wide = expected.astype(np.float64)
    finite = np.abs(wide[np.isfinite(wide)])
    most = RELATIVE[expected.dtype.itemsize] * max(float(finite.max(initial=0)), 1e-30)
    np.testing.assert_allclose(found.astype(np.float64), wide, rtol=0, atol=most, err_msg=name)


def by_default(cases: Iterable[Any], count: int) -> list[Any]:
    """The first `count` cases run by default, all others are slow."""
    return [one if i < count else pytest.param(*_tuple(one), marks=pytest.mark.slow) for i, one in enumerate(cases)]


def _tuple(case: Any) -> tuple[Any, ...]:
    return case if isinstance(case, tuple) else (case,)


def moves(program: fuseline.CompiledModel) -> dict[str, int]:
    """What only moves data, by kind; nothing where all of it is read where it lies."""
    counted = {key: program.stats[key] for key in ("fills", "copies", "standalone_transposes", "host_ops")}
    return {key: count for key, count in counted.items() if count}


def missed(program: fuseline.CompiledModel) -> list[tuple[str, str, str]]:
    """The edges that stayed, for the message of an assertion."""
    return [(one.code, one.rule, one.detail) for one in program.decisions if one.verdict == "missed"]


def mlir(folder: Path, text: str) -> Path:
    """A file with a program in MLIR."""
    path = folder / "program.mlir"
    path.write_text(text)
    return path


def _random(one: Any, sizes: dict[str, int]) -> Any:
    shape = [size if isinstance(size, int) else sizes[size] for size in one.shape]
    if one.dtype.kind == "b":
        return RNG.integers(0, 2, shape).astype(bool)
    if one.dtype.kind in "iu":
        return RNG.integers(0, 4, shape).astype(one.dtype)
    return RNG.standard_normal(shape).astype(one.dtype)
