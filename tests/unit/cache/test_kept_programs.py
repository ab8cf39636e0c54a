"""Programs kept under a key and found by it: the same program, or none."""

import os
import time
from pathlib import Path

import onnx
import pytest

import fuseline
from fuseline.cache import digests
from fuseline.cache.programs import find, keep
from fuseline.runtime.artifact import Artifact
from tests.graphs.onnx_text import onnx_model


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FUSELINE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(digests, "GRAIN_SECONDS", 0.0)
    return tmp_path / "cache"


def _model() -> onnx.ModelProto:
    return onnx_model("(float[n, 4] x) => (float[n, 4] y) <float[4] c = {1., 2., 3., 4.}> { y = Mul(x, c) }")


def _saved(path: Path) -> Path:
    onnx.save(_model(), path)
    time.sleep(0.02)  # longer than the grain of the file system's clock
    return path


@pytest.fixture(scope="module")
def artifact() -> Artifact:
    found = fuseline.compile(_model(), threads=1, cache=False).session.artifact
    assert isinstance(found, Artifact)
    return found


def _write_weights(root: Path, content: bytes) -> None:
    (root / "weights.bin").write_bytes(content)
    time.sleep(0.02)  # longer than the grain of the file system's clock


def test_what_is_kept_is_found_under_its_key_alone(artifact: Artifact, tmp_path: Path):
    assert find("key", None) is None
    assert keep("key", artifact, "the model", None, [], since=time.time())
    found = find("key", None)
    assert found is not None and found.model == "the model" and find("ke", None) is None
    assert (found.artifact.code, found.artifact.records) == (artifact.code, artifact.records)
    assert [bytes(block) for block in found.artifact.constants] == [bytes(block) for block in artifact.constants]


def test_files_beside_the_model_count_by_content(artifact: Artifact, tmp_path: Path):
    _write_weights(tmp_path, b"before")
    _saved(tmp_path / "m.onnx")
    assert keep("key", artifact, str(tmp_path / "m.onnx"), tmp_path, ["weights.bin"] * 2, since=time.time())
    assert find("key", tmp_path) is not None
    _write_weights(tmp_path, b"after!")
    assert find("key", tmp_path) is None
    _write_weights(tmp_path, b"before")
    assert find("key", tmp_path) is not None
    (tmp_path / "weights.bin").unlink()
    assert find("key", tmp_path) is None


@pytest.mark.parametrize("which", ["weights", "missing weights", "model", "missing model"])
def test_files_that_changed_or_went_away_meanwhile_keep_nothing(
    which: str, artifact: Artifact, tmp_path: Path, place: Path
):
    _write_weights(tmp_path, b"weights")
    path = _saved(tmp_path / "m.onnx")
    if which in ("weights", "model"):
        later = time.time() + 60
        os.utime(tmp_path / "weights.bin" if which == "weights" else path, (later, later))
    if which.startswith("missing"):
        (tmp_path / "weights.bin" if which == "missing weights" else path).unlink()
    assert not keep("key", artifact, str(path), tmp_path, ["weights.bin"], since=time.time())
    assert not list(place.rglob("*.fuse")) and find("key", tmp_path) is None


def test_a_damaged_artifact_is_removed_with_its_notes(artifact: Artifact, place: Path):
    keep("key", artifact, "m", None, [], since=time.time())
    entry = place / "programs" / "key.fuse"
    entry.write_bytes(entry.read_bytes()[:-1])
    assert find("key", None) is None and list((place / "programs").iterdir()) == []


def test_finding_counts_as_use(artifact: Artifact, place: Path):
    keep("key", artifact, "m", None, [], since=time.time())
    notes = place / "programs" / "key.json"
    os.utime(notes, (1, 1))
    assert find("key", None) is not None and notes.stat().st_mtime > 1
