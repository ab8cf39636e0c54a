"""Shipments as a worker has them: where they lie, which files are missing, and taking those in, in pieces.

Files lie in the cache under the digest of the shipment, and are what their own digest says, or not there.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path

from fuseline.cache.digests import file_digest
from fuseline.cache.folder import SHIPPED, private_folder
from fuseline.cluster.shipment import Shipment, ShippedFile
from fuseline.errors import FuselineError


def place_of(sent: Shipment) -> Path | None:
    """Where this machine has the shipment: at the sender's path where the contents are the same, or in the cache; None
    where it has not."""
    for folder in (Path(sent.folder), cache_place(sent)):
        if all(_has(folder, file) for file in sent.files):
            return folder / sent.main
    return None


def cache_place(sent: Shipment) -> Path:
    """The folder in this machine's cache; its parent is made."""
    return private_folder(SHIPPED) / sent.digest


def missing_files(sent: Shipment) -> list[str]:
    """Names of the files that have to be sent; none where `place_of` has them all."""
    if place_of(sent) is not None:
        return []
    folder = cache_place(sent)
    return [file.name for file in sent.files if not _has(folder, file)]


def take_piece(sent: Shipment, name: str, token: str, offset: int, piece: bytes, last: bool) -> None:
    """Take in the bytes of the file `name` from `offset` on. `token`: of this sending, so that two do not mix. After
    the `last` piece the file is there, if its content is what was announced. Raises FuselineError: E0502 where it
    cannot be written, E1104 where it is another."""
    file = next(file for file in sent.files if file.name == name)
    incomplete = private_folder(SHIPPED) / f"{file.digest}-{token}.tmp"
    try:
        with incomplete.open("r+b" if offset else "wb") as out:
            out.seek(offset)
            out.write(piece)
    except OSError as error:
        incomplete.unlink(missing_ok=True)
        raise FuselineError("E0502", f"cannot write: {error.strerror or error}", node=str(incomplete)) from error
    if last:
        _finish(sent, file, incomplete)


def drop_pieces(sent: Shipment, token: str) -> None:
    """Forget what a sending that failed left."""
    for file in sent.files:
        (private_folder(SHIPPED) / f"{file.digest}-{token}.tmp").unlink(missing_ok=True)


def _finish(sent: Shipment, file: ShippedFile, incomplete: Path) -> None:
    target = cache_place(sent) / file.name
    try:
        with incomplete.open("rb") as content:
            if hashlib.file_digest(content, "sha256").hexdigest() != file.digest:
                raise FuselineError("E1104", "what arrived is not what was announced", node=file.name)
        if not _has(cache_place(sent), file):  # a file that others may read is not put there again
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.replace(incomplete, target)
    except OSError as error:
        raise FuselineError("E0502", f"cannot write: {error.strerror or error}", node=str(target)) from error
    finally:
        incomplete.unlink(missing_ok=True)


def _has(folder: Path, file: ShippedFile) -> bool:
    path = folder / file.name
    with suppress(OSError):
        return path.stat().st_size == file.bytes and file_digest(path) == file.digest
    return False
