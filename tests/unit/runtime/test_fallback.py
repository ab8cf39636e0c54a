"""The second program of an artifact: it runs the sizes that the first one does not take, and lies in the same file."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fuseline.buffers import BufferRef
from fuseline.errors import FuselineError, UnequalSizesError
from fuseline.runtime import Artifact, Session, TensorSpec, read_artifact
from fuseline.runtime.artifact import artifact_bytes, artifact_from_bytes
from fuseline.size_requirement import SizeRequirement

X, Y = BufferRef("input", 0), BufferRef("output", 0)
N = ("sum", ((1, "n"),))
SHARED, OWN = (np.full(9, value, np.float32) for value in (10, 1000))


def _adds(kit: Any, number: int, *lengths: int, output: str = "y") -> Artifact:
    """Adds constant `number` of those two to a vector, of one of `lengths` (of any where none are given)."""
    grid = ("sum", ((1, ("div", ("sum", ((1, "n"), (kit.row - 1,))), kit.row)),))
    steps = [kit.command("add", [X, BufferRef("constant", number), Y], N, grid)]
    only = tuple(SizeRequirement(N, length, "a node") for length in lengths)
    borders = [TensorSpec("x", "float32", (N,))], [TensorSpec(output, "float32", (N,))]
    return kit.artifact(*borders, steps, [SHARED, OWN], symbols={"n": (0, 9)}, requirements=only, records=b"first")


@pytest.fixture
def both(kit: Any) -> Artifact:
    """Four elements and 10; three elements and 1000, the constants shared."""
    first, second = _adds(kit, 0, 4), _adds(kit, 1, 3)
    return first.with_fallback(second._replace(constants=(first.constants[0], second.constants[1])))


@pytest.fixture(params=["made", "read"])
def artifact(both: Artifact, request: pytest.FixtureRequest) -> Artifact:
    return both if request.param == "made" else artifact_from_bytes(artifact_bytes(both))


@pytest.mark.parametrize("threads", [1, 2])
def test_the_second_program_runs_what_the_first_does_not_take(artifact: Artifact, threads: int):
    session = Session(artifact, threads=threads)
    for length, added in ((4, 10), (3, 1000), (4, 10), (3, 1000)):
        x = np.random.default_rng().standard_normal(length, np.float32)
        np.testing.assert_array_equal(session.run({"x": x})["y"], x + np.float32(added))


def test_what_neither_takes_is_refused_by_the_second(artifact: Artifact):
    with pytest.raises(UnequalSizesError, match="sizes 5 and 3 must be equal") as caught:
        Session(artifact).run({"x": np.ones(5, np.float32)})
    assert caught.value.code == "E0203" and caught.value.__context__ is None


def test_other_faults_of_feeds_are_the_first_programs(artifact: Artifact):
    with pytest.raises(FuselineError, match=r"E0203 \[x\].* in 0\.\.9"):
        Session(artifact).run({"x": np.ones(10, np.float32)})


def test_a_part_of_the_first_program_has_no_second(artifact: Artifact):
    session = Session(artifact)
    session.run({"x": np.ones(4, np.float32)})
    with pytest.raises(UnequalSizesError):
        session.part(artifact.program).run({"x": np.ones(3, np.float32)})


def test_the_file_holds_shared_constants_once(both: Artifact, tmp_path: Path):
    both.save(tmp_path / "m.fuse")
    loaded = read_artifact(tmp_path / "m.fuse", verify=True)
    assert loaded.fallback is not None and both.fallback is not None
    assert loaded.fallback.program == both.fallback.program and loaded.fallback.code == both.fallback.code
    assert loaded.fallback.constants[0] is loaded.constants[0]
    assert loaded.fallback.constants[1] is not loaded.constants[1]
    assert [bytes(block) for block in loaded.fallback.constants] == [bytes(block) for block in both.fallback.constants]
    assert (loaded.records, loaded.fallback.records) == (b"first", b"")
    assert artifact_bytes(loaded) == (tmp_path / "m.fuse").read_bytes()


def test_a_damaged_second_image_is_found(both: Artifact):
    data = bytearray(artifact_bytes(both))
    (length,) = struct.unpack_from("<Q", data, 16)
    offset, size, _ = json.loads(data[64 : 64 + length])["fallback"]["image"]
    data[offset + size // 2] ^= 1
    with pytest.raises(FuselineError, match="E0401.*checksum of image of the fallback differs"):
        artifact_from_bytes(bytes(data))


def test_a_second_program_of_another_border_is_refused(kit: Any):
    other = _adds(kit, 0, 4).with_fallback(_adds(kit, 0, output="z"))
    with pytest.raises(FuselineError, match="E0401.*other inputs or outputs"):
        artifact_from_bytes(artifact_bytes(other))
