"""Programs for a CPU with features that this one lacks can be compiled and saved; loading or running them names what is
missing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fuseline
from fuseline.runtime import cpu
from tests.small_models import mlp

X = np.random.default_rng(12).standard_normal((4, 16), np.float32)


@pytest.fixture
def without_avx512(monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine, whatever it is, as one without AVX-512."""
    features = frozenset(feature for feature in cpu.machine_features() if not feature.startswith("avx512"))
    monkeypatch.setattr(cpu, "machine_features", lambda: features)


@pytest.mark.usefixtures("without_avx512")
def test_avx512_is_refused_by_name(tmp_path: Path):
    program = fuseline.compile(mlp(), target="cpu:avx512", threads=1)
    program.save(tmp_path / "m.fuse")
    for call in (lambda: fuseline.load(tmp_path / "m.fuse"), lambda: program.run({"x": X})):
        with pytest.raises(fuseline.FuselineError, match="lacks .*avx512f") as caught:
            call()
        assert caught.value.code == "E0403"


@pytest.mark.parametrize("missing", ["fma", "avx2"])
def test_each_missing_feature_is_named(missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    fuseline.compile(mlp(), target="cpu:avx2", threads=1).save(tmp_path / "m.fuse")
    monkeypatch.setattr(
        cpu, "machine_features", lambda: frozenset({"fma", "avx2", "f16c", "bmi", "bmi2", "avx"}) - {missing}
    )
    with pytest.raises(fuseline.FuselineError, match=f"lacks .*{missing}") as caught:
        fuseline.load(tmp_path / "m.fuse")
    assert caught.value.code == "E0403"
