"""MLIR programs with tokens deleted, repeated, swapped or replaced: what becomes of them must be a refusal with a code,
or a program.

from tests.properties.mutated_mlir import corpus, mutated, failure

text = mutated(corpus(), seed)        the same for the same seed
failure(text, folder)                 None, or what came out that should not have
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from pathlib import Path

import fuseline
from fuseline.errors import FuselineError
from fuseline.ir.text import split_input

TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[%@#!^]?[\w.$]+|->|::|[^\s\w]')
STRANGE = (
    "",
    "\x00",
    "é",
    "-1",
    "0",
    "99999999999999999999",
    "1e999",
    "?",
    "*",
    "i4",
    "f8E4M3FN",
    "tensor<?x?xf32>",
    "tensor<*xf32>",
    "index",
    "vector<4xf32>",
)
STRANGER = (
    "%0",
    "@main",
    "affine_map<(d0) -> (d1)>",
    "dense<>",
    "none",
    "loc(unknown)",
    'loc("a\x00b":1:1)',
    "arith.divsi",
    "unknown.op",
    "}",
    "{",
    "<",
    '"',
)
VALUE = r"%[\w.]+"
ALIKE = (
    r"\d+(?=x)|(?<=[\[ ,(])\d+(?=[\],)])",
    r"\b(?:[fi]\d+|bf16|index)\b",
    r"\b(?:arith|math)\.[a-z0-9]+",
    VALUE,
    r"\bd\d\b",
    r'"(?:parallel|reduction)"',
)
WORDS: tuple[tuple[str, ...], ...] = (
    ("0", "1", "2", "3", "5", "8", "16", "?"),
    ("f32", "f16", "bf16", "f64", "i1", "i8", "i32", "i64", "index", "i4"),
    (
        "arith.addf",
        "arith.addi",
        "arith.divsi",
        "arith.maximumf",
        "arith.xori",
        "math.exp",
        "arith.select",
        "math.absi",
        "arith.remf",
        "arith.negf",
    ),
    (),
    ("d0", "d1", "d2", "d3", "0", "d0 + d1", "d1 * 2", "d0 mod 2"),
    ('"parallel"', '"reduction"', '"window"'),
)
"""What a token that matches is replaced by: others of its kind, for values those of the text."""
FOLDER = Path(__file__).resolve().parents[1] / "filecheck"


def corpus() -> list[str]:
    """Valid programs: the parts of the FileCheck cases that pass as programs of their own, without comments."""
    found: list[str] = []
    for path in sorted(FOLDER.rglob("*.mlir")):
        for _, part in split_input(path.read_text(encoding="utf-8")):
            text = re.sub(r"^\s*//.*$", "", part, flags=re.MULTILINE).strip()
            if text.count("func.func") == 1 and len(text) < 4000:
                found.append(text + "\n")
    return found


def mutated(programs: Sequence[str], seed: int) -> str:
    """One of `programs` with one to three changes."""
    rng = random.Random(seed)
    text = rng.choice(programs)
    for _ in range(rng.choice((1, 1, 2, 3))):
        text = _changed(text, rng, rng.choice(programs))
    return text


def _changed(text: str, rng: random.Random, other: str) -> str:
    tokens = list(TOKEN.finditer(text))
    if not tokens:
        return text
    if rng.random() < 0.6:
        return _altered(text, rng)
    one, two = rng.choice(tokens), rng.choice(tokens)
    kind = rng.randrange(6)
    if kind == 0:
        return text[: one.start()] + text[one.end() :]
    if kind == 1:
        return text[: one.end()] + " " + one.group() + text[one.end() :]
    if kind == 2:
        return text[: one.start()] + two.group() + text[one.end() :]
    if kind == 3:
        return text[: one.start()] + rng.choice(STRANGE + STRANGER) + text[one.end() :]
    if kind == 4:
        foreign = rng.choice(list(TOKEN.finditer(other)) or tokens)
        return text[: one.start()] + foreign.group() + text[one.end() :]
    return _without_or_with_a_line(text, rng)


def _altered(text: str, rng: random.Random) -> str:
    """A change that many texts survive as text: a number, a type or an operation everywhere, a value in one place."""
    kind = rng.randrange(len(ALIKE))
    old = rng.choice(re.findall(ALIKE[kind], text) or [""])
    if not old:
        return text
    new = rng.choice(WORDS[kind] or re.findall(VALUE, text))
    places = [match.start() for match in re.finditer(re.escape(old) + r"(?![\w.])", text)]
    if rng.random() < 0.5 or old.startswith("%"):
        places = [rng.choice(places)] if places else []
    for place in reversed(places):
        text = text[:place] + new + text[place + len(old) :]
    return text


def _without_or_with_a_line(text: str, rng: random.Random) -> str:
    lines = text.splitlines(keepends=True)
    number = rng.randrange(len(lines))
    if rng.random() < 0.5:
        return "".join(lines[:number] + lines[number + 1 :])
    other = rng.randrange(len(lines))
    return "".join([*lines[:number], lines[other], *lines[number:]])


def failure(text: str, folder: Path, target: str = "null") -> str | None:
    """The internal error that compiling `text` ends with; None where it is refused or compiled. An exception without a
    code is raised."""
    path = folder / "mutated.mlir"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    try:
        fuseline.compile(path, target=target, threads=1)
    except FuselineError as error:
        return None if error.code != "E0901" else str(error)
    return None
