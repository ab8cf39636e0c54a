"""What is signed and stored, and what of it is believed, key by key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fuseline.errors import FuselineError
from fuseline.runtime.signing import KEY_BYTES, SIGNATURE_BYTES, SIGNED_BYTES, check_signature, signer

pytest.importorskip("cryptography")

from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

OURS, THEIRS = (Ed25519PrivateKey.from_private_bytes(bytes([seed]) * 32) for seed in (1, 2))
RAW = OURS.public_key().public_bytes_raw()
START = np.random.default_rng(3).bytes(64)


def _refusal(stored: bytes | None, trusted: list[Any], start: bytes = START) -> FuselineError:
    with pytest.raises(FuselineError) as caught:
        check_signature("m.fuse", start, stored, trusted)
    return caught.value


def test_what_is_stored_is_the_public_key_and_then_the_signature():
    stored = signer(OURS)(START)
    assert len(stored) == SIGNED_BYTES == KEY_BYTES + SIGNATURE_BYTES and stored[:KEY_BYTES] == RAW
    assert stored == signer(OURS)(START) != signer(THEIRS)(START)
    OURS.public_key().verify(stored[KEY_BYTES:], b"fuseline artifact 1: " + START)


@pytest.mark.parametrize(
    "trusted", [[OURS], [OURS.public_key()], [RAW], [RAW.hex()], [RAW.hex().upper()], [THEIRS, RAW]]
)
def test_a_key_is_taken_in_any_form(trusted: list[Any]):
    check_signature("m.fuse", START, signer(OURS)(START), trusted)


@pytest.mark.parametrize("form", ["pem", "ssh"])
def test_a_key_is_taken_from_a_file_or_its_content(form: str, tmp_path: Path):
    encoding, kind = (Encoding.PEM, PrivateFormat.PKCS8) if form == "pem" else (Encoding.PEM, PrivateFormat.OpenSSH)
    private = OURS.private_bytes(encoding, kind, NoEncryption())
    public = OURS.public_key().public_bytes(
        *(
            (Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
            if form == "pem"
            else (Encoding.OpenSSH, PublicFormat.OpenSSH)
        )
    )
    (tmp_path / "private").write_bytes(private)
    (tmp_path / "public").write_bytes(public)
    for key in (private, tmp_path / "private", str(tmp_path / "private")):
        stored = signer(key)(START)
        for trusted in (public, tmp_path / "public", str(tmp_path / "public")):
            check_signature("m.fuse", START, stored, [trusted])


@pytest.mark.parametrize("place", [0, 31, 63])
def test_any_change_of_the_start_is_found(place: int):
    changed = START[:place] + bytes([START[place] ^ 1]) + START[place + 1 :]
    error = _refusal(signer(OURS)(START), [RAW], changed)
    assert (error.code, error.node) == ("E0406", "m.fuse") and "changed after it was signed" in error.message


def test_no_signature_and_one_by_another():
    assert "not signed" in _refusal(None, [RAW]).message
    error = _refusal(signer(OURS)(START), [THEIRS, THEIRS])
    assert f"signed by {RAW.hex()}, which is none of the 2 trusted keys" in error.message
    assert "none of the 0 trusted" in _refusal(signer(OURS)(START), []).message


@pytest.mark.parametrize(
    ("key", "says"),
    [
        (5, "int is no key"),
        (None, "NoneType is no key"),
        ("no/such/file", "the key cannot be read"),
        ("a\0b", "the key cannot be read"),
        (b"short", "Ed25519 key"),
        (generate_private_key(SECP256R1()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()), "Ed25519"),
    ],
    ids=["number", "nothing", "path", "no path", "text", "another curve"],
)
def test_what_is_no_key(key: Any, says: str):
    for use in (lambda: signer(key), lambda: check_signature("m", START, signer(OURS)(START), [key])):
        with pytest.raises(FuselineError) as caught:
            use()
        assert caught.value.code == "E0501" and says in caught.value.message


def test_a_public_key_signs_nothing(tmp_path: Path):
    (tmp_path / "key").write_bytes(OURS.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    with pytest.raises(FuselineError, match="no private Ed25519 key") as caught:
        signer(tmp_path / "key")
    assert caught.value.node == str(tmp_path / "key")
