"""Code that is shared across extents computes what code of its own does: random models at the levels `exact` and
`shapes`, saved and loaded, and every access proved."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fuseline
from fuseline.targets.cpu.merging import groups
from tests.graphs.onnx_text import onnx_model
from tests.properties.near_shapes import near_shapes
from tests.proved import ProvedProgram


def feeds(rng: np.random.Generator, rows: int) -> dict[str, np.ndarray]:
    return {"x": rng.standard_normal((rows, 24)).astype(np.float32)}


@pytest.fixture
def any_price(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever can be shared is."""
    monkeypatch.setattr(groups, "MOST_SHARE", 100.0)


@pytest.mark.usefixtures("any_price")
@pytest.mark.parametrize("rows", ["5", "33", "n"])
def test_results_are_the_same(tmp_path: Path, rows: str):
    rng = np.random.default_rng()
    model = near_shapes(rng, rows)
    own, shared = (fuseline.compile(model, threads=2, fusion="none", dedup=level) for level in ("exact", "shapes"))
    assert shared.stats["executables"] <= own.stats["executables"]
    shared.save(tmp_path / "shared.fuse")
    for count in (7, 41) if rows == "n" else (int(rows),):
        given = feeds(rng, count)
        expected = list(own.run(given).values())
        for program in (shared, fuseline.load(tmp_path / "shared.fuse")):
            assert all(np.array_equal(a, b) for a, b in zip(expected, program.run(given).values(), strict=True))


@pytest.mark.usefixtures("any_price")
@pytest.mark.parametrize("rows", ["19", "n"])
def test_every_access_is_proved(rows: str):
    rng = np.random.default_rng()
    program = ProvedProgram(near_shapes(rng, rows), fusion="none", dedup="shapes")
    assert program.run(feeds(rng, 19))


def test_products_that_differ_in_rows_are_one_executable():
    rows = [14 * int(n) for n in np.random.default_rng().choice(np.arange(2, 9), 3, replace=False)]
    weight = np.random.default_rng().standard_normal((64, 64)).astype(np.float32)
    inputs, outputs = (", ".join(f"float[{n}, 64] {name}{i}" for i, n in enumerate(rows)) for name in "xy")
    body = "\n".join(f"y{i} = MatMul(x{i}, w)" for i in range(3))
    model = onnx_model(f"({inputs}) => ({outputs}) {{ {body} }}", {"w": weight})
    programs = {level: fuseline.compile(model, threads=1, dedup=level) for level in ("exact", "shapes")}
    assert [program.stats["executables"] for program in programs.values()] == [3, 1]
    given = {f"x{i}": np.random.default_rng().standard_normal((n, 64)).astype(np.float32) for i, n in enumerate(rows)}
    expected, found = (list(program.run(given).values()) for program in programs.values())
    assert all(np.array_equal(a, b) for a, b in zip(expected, found, strict=True))
