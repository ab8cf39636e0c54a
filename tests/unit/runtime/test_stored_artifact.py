"""The promise of docs/deploy.md: a file of this runtime's format version loads and computes what it did when it was
written; one of another version is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fuseline
from fuseline.runtime.abi import FORMAT_VERSION
from fuseline.runtime.cpu import machine_name
from tests.unit.runtime.stored.write import WEIGHTS, path_of


def test_there_is_a_file_of_this_version() -> None:
    """Who raises the version stores one: `python -m tests.unit.runtime.stored.write`."""
    assert path_of(FORMAT_VERSION).exists()


@pytest.mark.skipif(machine_name() != "x86_64", reason="the stored files are for x86-64")
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_file_of_this_version_computes_what_it_did(threads: int) -> None:
    program = fuseline.load(path_of(FORMAT_VERSION), threads=threads, verify=True)
    random = np.random.default_rng()
    for rows in (1, *random.integers(2, 400, 3)):
        x = random.standard_normal((rows, 5)).astype(np.float32)
        found = program.run({"x": x})
        y = np.maximum(x.astype(np.float64) @ WEIGHTS, 0)
        e = np.exp(y - y.max(1, keepdims=True))
        np.testing.assert_allclose(found["y"], y, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(found["z"], e / e.sum(1, keepdims=True), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("change", [-1, 1])
def test_a_file_of_another_version_is_refused(change: int, tmp_path: Path) -> None:
    data = bytearray(path_of(FORMAT_VERSION).read_bytes())
    data[8:12] = (FORMAT_VERSION + change).to_bytes(4, "little")
    (tmp_path / "other.fuse").write_bytes(data)
    with pytest.raises(fuseline.FuselineError, match=str(FORMAT_VERSION + change)) as caught:
        fuseline.load(tmp_path / "other.fuse")
    assert caught.value.code == "E0402"
