"""Sends a shipment to a worker that lacks it: file by file, in pieces, once for all workers that share a cache."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fuseline.cluster.shipment import Shipment
from fuseline.cluster.shipped_files import drop_pieces, missing_files, take_piece
from fuseline.errors import FuselineError

PIECE_BYTES = 8 << 20

Call = Callable[..., Any]
"""Calls a function with arguments on the worker, and answers what it returns, or the exception that it raised."""


def send(sent: Shipment, call: Call, folder: Path | None = None) -> int:
    """Bring what the worker behind `call` lacks of a shipment; the files are read in `folder` (that of the shipment).
    Answers how many bytes were sent.

    Raises FuselineError: what the worker raises, E0101 where a file cannot be read any more, E1104 where it is another
    than before."""
    token = uuid.uuid4().hex[:12]
    total = 0
    try:
        for name in _answer(call(missing_files, sent)):
            total += _send_file(sent, name, token, call, folder or Path(sent.folder))
    except BaseException:
        call(drop_pieces, sent, token)
        raise
    return total


def _send_file(sent: Shipment, name: str, token: str, call: Call, folder: Path) -> int:
    size = next(file.bytes for file in sent.files if file.name == name)
    path = folder / name
    try:
        with path.open("rb") as file:
            offset = 0
            while True:
                piece = file.read(PIECE_BYTES)
                last = offset + len(piece) >= size or not piece
                _answer(call(take_piece, sent, name, token, offset, piece, last))
                offset += len(piece)
                if last:
                    return offset
    except OSError as error:
        raise FuselineError("E0101", f"cannot read: {error.strerror or error}", node=str(path)) from error


def _answer(found: Any) -> Any:
    if isinstance(found, FuselineError):
        raise found
    if isinstance(found, BaseException):
        message = f"files cannot be sent: {type(found).__name__}: {found}"
        raise FuselineError("E1104", message, hint="see the log of the worker") from found
    return found
