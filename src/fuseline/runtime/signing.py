"""Signatures of artifacts: Ed25519, over the first 64 bytes of the file, which hold the digest of the header, which
holds those of all sections.

Keys are files as `openssl genpkey -algorithm ed25519` and `ssh-keygen -t ed25519` write them, or objects of the
`cryptography` package; a public key may be its 32 bytes (or 64 hexadecimal digits), too. That package is imported here
alone, and only where a key is given.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from fuseline.errors import FuselineError

KEY_BYTES, SIGNATURE_BYTES = 32, 64
SIGNED_BYTES = KEY_BYTES + SIGNATURE_BYTES
"""What is stored: the public key, then the signature."""

_DOMAIN = b"fuseline artifact 1: "


def signer(key: Any) -> Callable[[bytes], bytes]:
    """What turns the start of a file into the bytes to store. Raises FuselineError: E0501 for what is no private key,
    E0503 without the package."""
    private = _private(key)
    public = private.public_key().public_bytes_raw()
    return lambda start: public + private.sign(_DOMAIN + start)


def check_signature(name: str, start: bytes, stored: bytes | None, trusted: Iterable[Any]) -> None:
    """Raise FuselineError unless the file called `name` was signed by one of the `trusted` public keys: E0406; E0501
    for what is no key."""
    keys = [_public(key) for key in trusted]
    if stored is None:
        raise _untrusted(name, "it is not signed", "sign it: `fuseline compile MODEL --sign KEY`")
    known = next((key for key in keys if key.public_bytes_raw() == stored[:KEY_BYTES]), None)
    if known is None:
        who = stored[:KEY_BYTES].hex()
        raise _untrusted(
            name,
            f"it is signed by {who}, which is none of the {len(keys)} trusted keys",
            "trust that key, or do not load it",
        )
    from cryptography.exceptions import InvalidSignature

    try:
        known.verify(stored[KEY_BYTES:], _DOMAIN + start)
    except InvalidSignature as error:
        raise _untrusted(name, "it was changed after it was signed", "get it again from where it was made") from error


def _untrusted(name: str, detail: str, hint: str) -> FuselineError:
    return FuselineError("E0406", detail, node=name, hint=hint)


def _private(key: Any) -> Any:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_ssh_private_key

    if isinstance(key, Ed25519PrivateKey):
        return key
    found = _loaded(
        _content(key), [lambda data: load_pem_private_key(data, None), lambda data: load_ssh_private_key(data, None)]
    )
    if not isinstance(found, Ed25519PrivateKey):
        raise _no_key(key, "private")
    return found


def _public(key: Any) -> Any:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key, load_ssh_public_key

    if isinstance(key, Ed25519PublicKey):
        return key
    if isinstance(key, Ed25519PrivateKey):
        return key.public_key()
    raw = _raw(key)
    if raw is not None:
        return Ed25519PublicKey.from_public_bytes(raw)
    found = _loaded(_content(key), [load_pem_public_key, load_ssh_public_key])
    if not isinstance(found, Ed25519PublicKey):
        raise _no_key(key, "public")
    return found


def _raw(key: Any) -> bytes | None:
    """The 32 bytes that a key is given as, None where it is given otherwise."""
    if isinstance(key, bytes) and len(key) == KEY_BYTES:
        return key
    if isinstance(key, str) and len(key) == 2 * KEY_BYTES and all(digit in "0123456789abcdef" for digit in key.lower()):
        return bytes.fromhex(key)
    return None


def _content(key: Any) -> bytes:
    if isinstance(key, bytes):
        return key
    if not isinstance(key, str | os.PathLike):
        raise FuselineError("E0501", f"{type(key).__name__} is no key", hint="give the path of a key file")
    try:
        with open(os.fspath(key), "rb") as file:  # pyright: ignore[reportUnknownArgumentType]
            return file.read(1 << 16)
    except (OSError, ValueError) as error:
        raise FuselineError(
            "E0501", f"the key cannot be read: {error}", node=str(key), hint="check the path"
        ) from error  # pyright: ignore[reportUnknownArgumentType]


def _loaded(data: bytes, readers: Sequence[Callable[[bytes], Any]]) -> Any:
    from cryptography.exceptions import UnsupportedAlgorithm

    for reader in readers:
        try:
            return reader(data)
        except (ValueError, TypeError, UnsupportedAlgorithm):  # TypeError: it is encrypted
            continue
    return None


def _no_key(key: Any, kind: str) -> FuselineError:
    where = os.fspath(key) if isinstance(key, str | os.PathLike) else None  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    hint = "openssl genpkey -algorithm ed25519 -out key.pem; openssl pkey -in key.pem -pubout -out key.pub"
    return FuselineError(
        "E0501", f"no {kind} Ed25519 key without a password", node=where if isinstance(where, str) else None, hint=hint
    )
