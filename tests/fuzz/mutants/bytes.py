"""Changes to bytes and to text, whatever they mean."""

from __future__ import annotations

import random
import re

NUMBERS = (
    "0",
    "-1",
    "1",
    "2",
    "7",
    "2147483648",
    "-9223372036854775808",
    "1000000000000000000000",
    "1e400",
    "nan",
    "0x7F",
    "?",
)


TOKEN = re.compile(
    r'(?P<text>"[^"\n]*")|(?P<name>[%@#!^][\w.]+)|(?P<number>-?\d+(?:\.\d+)?)|(?P<word>[A-Za-z_][A-Za-z_.]*)|(?P<sign>[^\sA-Za-z0-9])'
)
"""Tokens of MLIR and TOML by kind; sizes of a type (`4x?xf32`) are numbers and words of their own."""


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
    """A token (or all like it) replaced by another of the text, mostly of its kind, or by a number; one doubled or left
    out; the same for lines."""
    kind = rng.choice((0, 1, 2, 3, 3, 3, 3, 4, 4, 5, 6, 7, 7, 7, 7))
    if kind < 3:
        return _changed_lines(text, rng, kind)
    tokens = list(TOKEN.finditer(text))
    if not tokens:
        return text
    token = rng.choice(tokens)
    alike = [other for other in tokens if other.lastgroup == token.lastgroup] if rng.random() < 0.8 else tokens
    other = rng.choice(alike)[0] if rng.random() < 0.8 else rng.choice(NUMBERS)
    if kind == 7:
        return TOKEN.sub(lambda found: other if found[0] == token[0] else found[0], text)
    new = {3: other, 4: rng.choice(NUMBERS), 5: "", 6: token[0] * 2}[kind]
    return text[: token.start()] + new + text[token.end() :]


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
