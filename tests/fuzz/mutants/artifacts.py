"""Changes to an artifact: bytes anywhere, or one leaf of its header, signed again."""

from __future__ import annotations

import hashlib
import json
import random
import struct
from typing import Any

from tests.fuzz.mutants.bytes import changed_bytes

PREAMBLE, HEADER = 32, 64
VALUES: tuple[Any, ...] = (0, -1, 1, 2**31, 2**62, -(2**63), 10**30, None, "x", [], {}, 1.5, True)


def changed_artifact(data: bytes, rng: random.Random) -> tuple[bytes, bool]:
    """The changed bytes, and whether the header was changed and signed again."""
    if rng.random() < 0.5:
        signed = _signed_again(data, rng)
        if signed is not None:
            return signed, True
    return changed_bytes(data, rng), False


def _signed_again(data: bytes, rng: random.Random) -> bytes | None:
    """None where the changed header is longer than the place for it."""
    size = struct.unpack_from("<8sIIQQ", data)[3]
    header = json.loads(data[HEADER : HEADER + size])
    *way, last = rng.choice(list(_leaves(header, [])))
    inner = header
    for key in way:
        inner = inner[key]
    old = inner[last]
    inner[last] = rng.choice((*VALUES, *((old * 2 + 8, old + 1, old - 1, old ^ 64) if isinstance(old, int) else ())))
    text = json.dumps(header, separators=(",", ":")).encode()
    if len(text) > size:
        return None
    text = text.ljust(size)
    signature = hashlib.sha256(data[:PREAMBLE] + text).digest()
    return data[:PREAMBLE] + signature + text + data[HEADER + size :]


def _leaves(value: Any, way: list[Any]) -> Any:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if inner is None:
        yield way
        return
    for key, item in inner:
        yield from _leaves(item, [*way, key])
