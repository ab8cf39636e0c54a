"""Changes to bytes and to text, whatever they mean."""

from __future__ import annotations

import random
import re

NUMBERS = ("0", "-1", "1", "2", "7", "2147483648", "-9223372036854775808", "1000000000000000000000", "1e400", "nan", "0x7F", "?")


def changed_bytes(data: bytes, rng: random.Random) -> bytes:
    """A flipped bit, a changed, inserted or missing stretch, or the beginning alone."""
    changed, at = bytearray(data), rng.randrange(max(len(data), 1))
    kind = rng.randrange(6)
    if kind == 0 and changed:
        changed[at] ^= 1 << rng.randrange(8)
    elif kind == 1 and changed:
        changed[at] = rng.randrange(256)
    elif kind == 2:
        del changed[at : at + rng.choice((1, 2, 8, 64))]
    elif kind == 3:
        changed[at:at] = bytes(rng.randrange(256) for _ in range(rng.choice((1, 4, 16))))
    elif kind == 4:
        del changed[at:]
    else:
        changed[at : at + 16] = bytes(len(changed[at : at + 16]))
    return bytes(changed)


def changed_text(text: str, rng: random.Random) -> str:
    """A token replaced by another of the text, by a number, doubled or left out; two lines exchanged, one doubled or left out."""
    kind = rng.randrange(7)
    if kind < 3:
        return _changed_lines(text, rng, kind)
    tokens = [found.span() for found in re.finditer(r"[A-Za-z_.%@#!$\"]+|-?\d+(?:\.\d+)?|[^\sA-Za-z0-9]", text)]
    if not tokens:
        return text
    start, end = rng.choice(tokens)
    other = text[slice(*rng.choice(tokens))]
    new = {3: other, 4: rng.choice(NUMBERS), 5: "", 6: text[start:end] * 2}[kind]
    return text[:start] + new + text[end:]


def _changed_lines(text: str, rng: random.Random, kind: int) -> str:
    lines = text.splitlines(keepends=True)
    if not lines:
        return text
    at, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    if kind == 0:
        lines[at], lines[other] = lines[other], lines[at]
    elif kind == 1:
        lines.insert(other, lines[at])
    else:
        del lines[at]
    return "".join(lines)
