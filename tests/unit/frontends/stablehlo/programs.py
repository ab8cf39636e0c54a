"""StableHLO programs in text, compiled for the CPU and evaluated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import fuseline
from fuseline.errors import FuselineError

_NAMES = {"float32": "f32", "float64": "f64", "float16": "f16", "bool": "i1"}


def type_of(array: NDArray[Any]) -> str:
    """The tensor type of an array."""
    name = array.dtype.name
    element = _NAMES.get(name) or name.replace("uint", "ui").replace("int", "i")
    return f"tensor<{''.join(f'{size}x' for size in array.shape)}{element}>"


def program(lines: str, arguments: str, results: str, names: str) -> str:
    """A module with one function."""
    return (
        f"module @m {{\n  func.func public @main({arguments}) -> ({results}) {{\n{lines}\n"
        f"    return {names} : {results}\n  }}\n}}\n"
    )


def run(text: str, folder: Path, *feeds: NDArray[Any], tolerance: float = 1e-5) -> list[NDArray[Any]]:
    """What the program answers, which must be the same on the CPU and evaluated."""
    path = folder / "p.mlir"
    path.write_text(text)
    found: list[list[NDArray[Any]]] = []
    for target in ("cpu", "interpreter"):
        model = fuseline.compile(path, target=target, threads=1)
        found.append(
            list(model.run({item.name: feed for item, feed in zip(model.inputs, feeds, strict=True)}).values())
        )
    for native, evaluated in zip(*found, strict=True):
        np.testing.assert_allclose(native, evaluated, rtol=tolerance, atol=tolerance)
    return found[0]


def refused(text: str, folder: Path, words: str, code: str = "E0306") -> None:
    """The compile refuses the program and names a place."""
    path = folder / "p.mlir"
    path.write_text(text)
    with pytest.raises(FuselineError, match=words) as caught:
        fuseline.compile(path, target="null")
    assert caught.value.code == code, caught.value
    assert caught.value.node is not None
