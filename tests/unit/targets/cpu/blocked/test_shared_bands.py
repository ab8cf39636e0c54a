"""One form for dispatches over bands that keep rows, where they are equal up to extents: inverted bottlenecks of random
sizes that share executables compute to the bit what they compute alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import fuseline
from fuseline.targets.cpu.families.blocked import family
from fuseline.targets.cpu.families.blocked.kept_rows import apart
from fuseline.targets.cpu.families.blocked.plan import BlockedPlan
from fuseline.targets.cpu.families.blocked.shared_plan import shared_blocked_plans
from fuseline.targets.cpu.families.family import Shared
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model

BANDS = """isa = "{isa}"
image_bytes_limit = 1000
[costs]
memory_bytes_per_ns = 0.001
stored_bytes_per_ns = 0.001
sharing_loss = 1.0
"""
"""Bands pay whatever they compute twice, and so does a kernel in common."""

Sizes = tuple[int, int, int, int, int]
"""Rows, columns, and channels of what is read, between, and made."""


def _chains(sizes: Sequence[Sizes], window: int = 3, expand: int = 1) -> onnx.ModelProto:
    """Convolution, Clip, depthwise convolution and product, several times beside each other."""
    weights: dict[str, Any] = {"lo": np.full((), -0.5), "hi": np.ones(())}
    inputs, body = list[str](), list[str]()
    around, beside = (f"pads = {[size // 2] * 4}" for size in (window, expand))
    for i, (rows, columns, read, inner, made) in enumerate(sizes):
        shapes = {"p": (inner, read, expand, expand), "q": (inner, 1, window, window), "r": (made, inner, 1, 1)}
        weights |= {f"{name}{i}": RNG.normal(size=shape) / np.prod(shape[1:]) ** 0.5 for name, shape in shapes.items()}
        weights |= {f"{name}{i}b": RNG.normal(size=shape[0]) for name, shape in shapes.items()}
        inputs.append(f"float[1, {read}, {rows}, {columns}] x{i}")
        body.append(f"""a{i} = Conv<{beside}>(x{i}, p{i}, p{i}b)  b{i} = Clip(a{i}, lo, hi)
            c{i} = Conv<{around}, group = {inner}>(b{i}, q{i}, q{i}b)  e{i} = Conv(c{i}, r{i}, r{i}b)
            y{i} = Transpose<perm = [0, 2, 3, 1]>(e{i})""")
    outputs = ", ".join(f"y{i}" for i in range(len(sizes)))
    text = f"({', '.join(inputs)}) => ({outputs}) {{ {' '.join(body)} }}"
    return onnx_model(text, {name: np.asarray(array, np.float32) for name, array in weights.items()})


def _target(tmp_path: Path, isa: str = "") -> str:
    (tmp_path / "machine.toml").write_text(BANDS.format(isa=isa).replace('isa = ""\n', ""))
    return f"cpu:{tmp_path}/machine.toml"


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> list[Shared]:
    """The forms that are found for plans which keep rows."""
    found: list[Shared] = []

    def noted(plans: Sequence[BlockedPlan], *args: Any) -> list[Shared]:
        forms = shared_blocked_plans(plans, *args)
        found.extend(one for one in forms if any(isinstance(p, BlockedPlan) and p.kept_image for p in one.plans))
        return forms

    monkeypatch.setattr(family, "shared_blocked_plans", noted)
    return found


def _drawn_sizes(count: int) -> list[Sizes]:
    columns, inner, made = int(RNG.integers(9, 60)), 16 * int(RNG.integers(1, 6)), 16 * int(RNG.integers(1, 4))
    return [(int(RNG.integers(30, 120)), columns, int(RNG.integers(3, 40)), inner, made) for _ in range(count)]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("window", "expand"), [(3, 1), (5, 1), (3, 3)])
def test_results_are_those_of_kernels_of_their_own(window: int, expand: int, threads: int, tmp_path: Path):
    sizes, target = _drawn_sizes(3), _target(tmp_path)
    model = _chains(sizes, window, expand)
    feeds = {f"x{i}": RNG.normal(size=(1, n, h, w)).astype(np.float32) for i, (h, w, n, *_) in enumerate(sizes)}
    levels = ("exact", "shapes")
    own, alike = (fuseline.compile(model, target=target, threads=threads, dedup=level) for level in levels)
    assert alike.stats["executables"] <= own.stats["executables"]
    expected = fuseline.compile(model, target="interpreter", fusion="none").run(feeds)
    alone, found = own.run(feeds), alike.run(feeds)
    for name, array in found.items():
        np.testing.assert_array_equal(array, alone[name])
        np.testing.assert_allclose(array, expected[name], rtol=0, atol=1e-4)


@pytest.mark.parametrize(("isa", "most"), [("avx2", 1), ("avx512", 2)])
def test_heights_and_channels_are_numbers(isa: str, most: int, shared: list[Shared], tmp_path: Path):
    model = _chains([(96, 40, 16, 48, 16), (112, 44, 24, 48, 16), (128, 40, 16, 48, 16)])
    target = _target(tmp_path, isa)
    programs = [fuseline.compile(model, target=target, threads=1, dedup=level) for level in ("exact", "shapes")]
    own, alike = (program.stats["executables"] for program in programs)
    assert own == 3 and alike <= most
    assert sorted(n for one in shared for n in one.members) == [0, 1, 2]


def test_what_makes_the_rows_of_an_image_reads_constants_that_lie_in_one_way(shared: list[Shared], tmp_path: Path):
    sizes = [(int(RNG.integers(30, 120)), 40, 24, 48, 16 * n) for n in (1, 2, 3)]
    fuseline.compile(_chains(sizes), target=_target(tmp_path, "avx2"), threads=1, dedup="shapes")
    plans = [plan for one in shared for plan in one.plans if isinstance(plan, BlockedPlan)]
    assert all(len(plan.makers_of_rows) == 2 and apart(plan.makers_of_rows) is None for plan in plans)
