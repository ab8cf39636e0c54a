"""Signed artifacts: what is asked for is there, whole, and by the right key, or nothing is run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fuseline
from fuseline.cli.main import main
from fuseline.errors import FuselineError
from fuseline.runtime import load, read_artifact
from tests.properties.mutated_artifacts import changed, header_of, signed
from tests.small_models import mlp

pytest.importorskip("cryptography")

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

FORMS = {
    "pem": (Encoding.PEM, PrivateFormat.PKCS8, PublicFormat.SubjectPublicKeyInfo),
    "ssh": (Encoding.PEM, PrivateFormat.OpenSSH, None),
}


class Keys:
    """A pair in files of both kinds; the same seed makes the same pair."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.private = Ed25519PrivateKey.from_private_bytes(bytes([seed]) * 32)
        self.public = self.private.public_key()
        for name, (encoding, private_form, public_form) in FORMS.items():
            (folder / f"{seed}.{name}").write_bytes(self.private.private_bytes(encoding, private_form, NoEncryption()))
            public = (encoding, public_form) if public_form else (Encoding.OpenSSH, PublicFormat.OpenSSH)
            (folder / f"{seed}.{name}.pub").write_bytes(self.public.public_bytes(*public))
        self.folder, self.seed = folder, seed

    def file(self, name: str) -> str:
        return str(self.folder / f"{self.seed}.{name}")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("keys")


@pytest.fixture(scope="module")
def ours(folder: Path) -> Keys:
    return Keys(folder, 1)


@pytest.fixture(scope="module")
def theirs(folder: Path) -> Keys:
    return Keys(folder, 2)


@pytest.fixture(scope="module")
def program() -> fuseline.CompiledModel:
    return fuseline.compile(mlp(), threads=1)


@pytest.fixture
def path(program: fuseline.CompiledModel, ours: Keys, tmp_path: Path) -> Path:
    program.save(tmp_path / "m.fuse", sign=ours.file("pem"))
    return tmp_path / "m.fuse"


def _refused(path: Path, trusted: Any, code: str = "E0406", words: str = "") -> None:
    with pytest.raises(FuselineError) as caught:
        fuseline.load(path, trusted=trusted)
    assert caught.value.code == code, caught.value
    assert words in str(caught.value)


def test_a_signed_artifact_loads_with_its_key_in_any_form(
    program: fuseline.CompiledModel, ours: Keys, theirs: Keys, tmp_path: Path
):
    x = np.random.default_rng(0).standard_normal((4, 16), np.float32)
    for private in (ours.file("pem"), ours.file("ssh"), ours.private):
        program.save(tmp_path / "m.fuse", sign=private)
        raw = ours.public.public_bytes_raw()
        for public in (ours.file("pem.pub"), Path(ours.file("ssh.pub")), raw, raw.hex(), ours.public, ours.private):
            loaded = fuseline.load(tmp_path / "m.fuse", trusted=[theirs.public, public])
            np.testing.assert_array_equal(loaded(x), program(x))
        assert load(tmp_path / "m.fuse").inputs[0].name == "x"  # nobody has to ask
        assert read_artifact(tmp_path / "m.fuse", trusted=[raw], verify=True).producer == "fuseline"


def test_unsigned_or_signed_by_another_is_refused(
    program: fuseline.CompiledModel, path: Path, ours: Keys, theirs: Keys, tmp_path: Path
):
    _refused(path, [theirs.public], words=ours.public.public_bytes_raw().hex())
    _refused(path, [])
    program.save(tmp_path / "plain.fuse")
    _refused(tmp_path / "plain.fuse", [ours.public], words="not signed")


def test_every_change_after_signing_is_found(path: Path, ours: Keys, tmp_path: Path):
    whole = path.read_bytes()
    header = header_of(whole)
    assert header["constants"]
    places = [
        20,
        70,
        header["image"][0] + 5,
        header["records"][0],
        header["constants"][-1][0],
        *(header["signature"][0] + i for i in (0, 40, 95)),
    ]
    for place in places:
        (tmp_path / "c.fuse").write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(FuselineError) as caught:
            fuseline.load(tmp_path / "c.fuse", trusted=[ours.public])
        assert caught.value.code in ("E0401", "E0406")
    for change in ((("producer",), "other"), (("program", "threads"), 2), (("metadata", "model"), "m")):
        (tmp_path / "c.fuse").write_bytes(signed(whole, changed(header, *change), relinked=True))
        fuseline.load(tmp_path / "c.fuse")  # the checksums were made again
        _refused(tmp_path / "c.fuse", [ours.public], words="changed after it was signed")
    (tmp_path / "c.fuse").write_bytes(signed(whole, {**header, "signature": None}))
    _refused(tmp_path / "c.fuse", [ours.public], "E0401")


def test_what_is_no_key_is_refused(program: fuseline.CompiledModel, path: Path, ours: Keys, tmp_path: Path):
    (tmp_path / "text").write_text("no key")
    locked = ours.private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"word"))
    (tmp_path / "locked").write_bytes(locked)
    for key in (tmp_path / "text", tmp_path / "nothing", tmp_path / "locked", 5, b"short", ours.file("pem.pub")):
        with pytest.raises(FuselineError) as caught:
            program.save(tmp_path / "n.fuse", sign=key)
        assert caught.value.code == "E0501"
        assert not (tmp_path / "n.fuse").exists()
    for key in (tmp_path / "text", tmp_path / "nothing", 5, b"short", ours.file("pem")):
        _refused(path, [key], "E0501")
    _refused(path, ours.file("pem.pub"), "E0501", "a list of keys")


def test_on_the_command_line(ours: Keys, theirs: Keys, tmp_path: Path):
    (tmp_path / "m.onnx").write_bytes(mlp().SerializeToString())
    model, artifact = str(tmp_path / "m.onnx"), str(tmp_path / "m.fuse")
    assert main(["compile", model, "--sign", ours.file("pem")]) == 0
    assert main(["run", artifact, "--trusted", theirs.file("pem.pub"), "--trusted", ours.file("ssh.pub")]) == 0
    assert main(["run", artifact, "--trusted", theirs.file("pem.pub")]) == 1
    assert main(["run", model, "--trusted", ours.file("pem.pub")]) == 2
    assert main(["compile", model, "--sign", str(tmp_path / "nothing")]) == 2
    assert main(["compile", model, "--emit", "input", "--sign", ours.file("pem")]) == 2


def test_a_session_asks_as_well(path: Path, ours: Keys, theirs: Keys):
    for source in (path, path.read_bytes()):
        fuseline.InferenceSession(source, trusted=[ours.public])
        with pytest.raises(FuselineError) as caught:
            fuseline.InferenceSession(source, trusted=[theirs.public])
        assert caught.value.code == "E0406"
    with pytest.raises(FuselineError) as caught:
        fuseline.InferenceSession(mlp().SerializeToString(), trusted=[ours.public])
    assert caught.value.code == "E0501"


def test_without_the_package_the_extra_is_named(path: Path, ours: Keys, monkeypatch: pytest.MonkeyPatch):
    import sys

    for name in [name for name in sys.modules if name.partition(".")[0] == "cryptography"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(FuselineError, match=r"fuseline\[sign\]") as caught:
        fuseline.load(path, trusted=[ours.file("pem.pub")])
    assert caught.value.code == "E0503"
