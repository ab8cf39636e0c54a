"""Several models by one compile: an artifact for each, whole or not at all, and rows for those that fail."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import fuseline
from fuseline.cli import main as command_line
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model

CPU = ("--target", "cpu", "--threads", "1")


def _ran(capsys: pytest.CaptureFixture[str], *words: object, code: int = 0) -> tuple[str, str]:
    capsys.readouterr()
    assert command_line.main(["compile", *map(str, words)]) == code
    return capsys.readouterr()


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """Two models, one of them in a folder, and one that is broken."""
    (tmp_path / "m" / "b").mkdir(parents=True)
    onnx.save(onnx_model("(float[2,3] x) => (float[2,3] y) { y = Exp (x) }"), tmp_path / "m" / "a.onnx")
    onnx.save(onnx_model("(float[4] x) => (float[4] y) { z = Abs (x) y = Neg (z) }"), tmp_path / "m" / "b" / "c.onnx")
    (tmp_path / "m" / "broken.onnx").write_bytes(b"no model")
    return tmp_path / "m"


def test_a_folder_to_a_folder(models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    out, err = _ran(capsys, models, "-o", tmp_path / "out", *CPU, code=1)
    assert sorted(path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*.*")) == [
        "a.fuse",
        "b/c.fuse",
    ]
    lines = out.splitlines()
    assert len(lines) == 3 and "a.fuse: 1 dispatch" in lines[0] and lines[2].startswith("broken.onnx: error E01")
    assert "[1/3] a.onnx" in err
    x = RNG.standard_normal((2, 3)).astype(np.float32)
    np.testing.assert_allclose(fuseline.load(tmp_path / "out" / "a.fuse").run({"x": x})["y"], np.exp(x), rtol=1e-5)


def test_beside_the_models(models: Path, capsys: pytest.CaptureFixture[str]):
    """Once more over the same folder: the artifacts that lie there now are no models."""
    for _ in range(2):
        out, _ = _ran(capsys, models, "--json", *CPU, code=1)
        document: dict[str, Any] = json.loads(out)
        first, second, broken = document["models"]
        assert (first["model"], second["model"]) == ("a.onnx", "b/c.onnx") and first["dispatches"] == 1
        assert Path(first["output"]) == models / "a.fuse" and first["bytes"] == (models / "a.fuse").stat().st_size
        assert broken["error"]["code"].startswith("E01")


def test_what_is_refused(models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    a, c = models / "a.onnx", models / "b" / "c.onnx"
    for words, text in (
        ((a, c, "--emit", "input"), "--emit is for one model"),
        ((a, c, "--dump-dispatches", tmp_path / "d"), "--dump-dispatches is for one model"),
        ((a, c, "-o", "-"), "several artifacts cannot go to standard output"),
    ):
        _, err = _ran(capsys, *words, *CPU, code=2)
        assert text in " ".join(err.split())
    (models / "a.mlir").write_text("")
    _, err = _ran(capsys, models, "-o", tmp_path / "out", *CPU, code=2)
    assert "2 models would have the artifact a" in " ".join(err.split()) and not (tmp_path / "out").exists()
    (tmp_path / "file").write_text("")
    _, err = _ran(capsys, a, c, "-o", tmp_path / "file", *CPU, code=1)
    assert "E0502" in err and (tmp_path / "file").read_text() == ""
    _ran(capsys, a, *CPU)
    _, err = _ran(capsys, models / "*.fuse", *CPU, code=1)
    assert "only artifacts are there" in err


def test_a_place_that_cannot_be_written_is_a_row(models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "out" / "a.fuse").mkdir(parents=True)
    out, _ = _ran(capsys, models / "a.onnx", models / "b" / "c.onnx", "-o", tmp_path / "out", "--stats", *CPU, code=1)
    assert "a.onnx: error E0502" in out and (tmp_path / "out" / "b" / "c.fuse").is_file()
    assert "error E0502" in out.splitlines()[3] and "b/c.onnx" in out.splitlines()[4]


def test_artifacts_are_signed(models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    pytest.importorskip("cryptography")
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

    key = Ed25519PrivateKey.generate()
    (tmp_path / "key").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    public = tmp_path / "public"
    public.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    a, c = models / "a.onnx", models / "b" / "c.onnx"
    _ran(capsys, a, c, "-o", tmp_path / "out", "--sign", tmp_path / "key", *CPU)
    x = RNG.standard_normal((2, 3)).astype(np.float32)
    signed = fuseline.load(tmp_path / "out" / "a.fuse", trusted=[public])
    np.testing.assert_allclose(signed.run({"x": x})["y"], np.exp(x), rtol=1e-5)
