"""Artifacts with one number of the header changed and signed again: what somebody could do who knows the format and has
no key.

`mutations` answers them in a repeatable order, each leaf of the header with values that are wrong in every way we know;
`outcomes` says, from a process of its own, what came of them: `same`, `other` numbers, a code, the exception that
leaked, or the signal that ended it.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import fuseline

Path_ = tuple[Any, ...]
_HEADER_AT = 64
_SECONDS = 60

PLAIN = (0, -1, 1, 2, 3, 7, 64, 100, 4096, 2**31, 2**32 + 1, 2**62, 2**63 - 1, -(2**31), -(2**63), 10**30, 10**400)
OTHER: tuple[Any, ...] = (None, "x", "", [], {}, [0], 1.5, -0.0, True, False, float("inf"), float("-inf"), float("nan"))
SIZES: tuple[Any, ...] = (
    ["sum", [[1, "nothing"]]],
    ["sum", []],
    ["sum", [[1], [1]]],
    ["sum", [[2**62, ["div", 1, 0]]]],
    ["sum", [[1, ["max", 2**61, 1]]]],
    ["sum", [[2**40, ["max", 2**40, 0]]]],
    ["sum", [[True]]],
    ["sum", [[1, ["div", 1]]]],
    ["sun", [[1]]],
)


def header_of(data: bytes) -> dict[str, Any]:
    """The header of an artifact's bytes."""
    (length,) = struct.unpack_from("<Q", data, 16)
    return json.loads(data[_HEADER_AT : _HEADER_AT + length])


def signed(data: bytes, header: Mapping[str, Any], *, relinked: bool = False) -> bytes:
    """The artifact with another header, checksum right. `relinked`: the image is told that this is its program, as our
    own writer would."""
    (old,) = struct.unpack_from("<Q", data, 16)
    body, copy = data[_whole_pages(_HEADER_AT + old) :], json.loads(json.dumps(header))
    if relinked:
        body = _relinked(data, body, copy)
    text = _text(copy)
    distance = _whole_pages(_HEADER_AT + max(len(text) + _ROOM, old)) - _whole_pages(_HEADER_AT + old)
    if len(text) > old:
        _move(copy, distance)
        text = _text(copy).ljust(len(text) + _ROOM)
    text = text.ljust(old)
    begin = _whole_pages(_HEADER_AT + len(text))
    start = data[:16] + struct.pack("<QQ", len(text), begin + len(body))
    return (start + hashlib.sha256(start + text).digest() + text).ljust(begin, b"\0") + body


_ROOM = 256
"""Bytes that longer offsets may take."""


def _text(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _whole_pages(count: int) -> int:
    return -(-count // 4096) * 4096


def _relinked(data: bytes, body: bytes, header: dict[str, Any]) -> bytes:
    """The sections, with the digest of each of the header's programs in its image's table; the header's rows of the
    images follow."""
    first, begin = header_of(data), len(data) - len(body)
    for before, after in ((first, header), (first["fallback"], header.get("fallback"))):
        if not isinstance(before, dict) or not isinstance(after, dict):
            continue
        offset, length, digest = before["image"]
        image = data[offset : offset + length]
        old, new = (hashlib.sha256(_text(h.get("program"))).hexdigest().encode() for h in (before, after))
        assert image.count(old) == 1
        image = image.replace(old, new)
        if isinstance(after.get("image"), list) and after["image"][-1:] == [digest]:
            after["image"][-1] = hashlib.sha256(image).hexdigest()
        body = body[: offset - begin] + image + body[offset - begin + length :]
    return body


def _move(header: dict[str, Any], distance: int) -> None:
    """Let the sections lie `distance` bytes further on."""
    fallback = header.get("fallback")
    second = fallback.get("image") if isinstance(fallback, dict) else None
    for row in (header.get("image"), header.get("records"), *(header.get("constants") or ()), second):
        if isinstance(row, list) and row and type(row[0]) is int:
            row[0] += distance


def leaves(value: Any, path: Path_ = ()) -> Iterator[Path_]:
    """The places of all values in parsed JSON: numbers and texts, and the lists and objects around them."""
    if path:
        yield path
    items: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from leaves(inner, (*path, key))


def changed(header: Mapping[str, Any], path: Path_, value: Any) -> dict[str, Any]:
    """A copy of the header with another value at `path`; `value` may be a function of the old one."""
    copy = json.loads(json.dumps(header))
    place = copy
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value(place[path[-1]]) if callable(value) else value
    return copy


def mutations(data: bytes, count: int, seed: int = 0, *, relinked: bool = False) -> Iterator[tuple[str, bytes]]:
    """`count` artifacts with one or two values changed, each with words that say which."""
    header, rng = header_of(data), random.Random(seed)
    places = list(leaves({key: value for key, value in header.items() if key not in ("producer", "metadata")}))
    numbers = [path for path in places if type(_at(header, path)) is int]
    made = 0
    while made < count:
        copy, words = header, list[str]()
        for _ in range(1 if rng.random() < 0.8 else 2):
            path = rng.choice(numbers if rng.random() < 0.7 else places)
            try:
                value = _wrong(_at(copy, path), rng, copy, places)
                copy = changed(copy, path, value)
            except (KeyError, IndexError, TypeError):  # the first change took the place of the second away
                continue
            words.append(f"{'.'.join(map(str, path))} = {str(value)[:40]}")
        if copy != header:
            made += 1
            yield "; ".join(words), signed(data, copy, relinked=relinked)


def branch_mutations(data: bytes, count: int, seed: int = 0, *, relinked: bool = False) -> Iterator[tuple[str, bytes]]:
    """The same for the programs inside the first operator that chooses between two, its own numbers included."""
    header = header_of(data)
    step = next(i for i, step in enumerate(header["program"]["steps"]) if step[0] == "host" and step[1] == "branches")
    node = bytes.fromhex(header["program"]["steps"][step][2])
    (size,) = struct.unpack_from("<I", node)
    rows, inner, rng = json.loads(node[4 : 4 + size]), list[bytes](), random.Random(seed)
    at = 4 + size
    for _, length in rows["branches"]:
        inner.append(node[at : at + length])
        at += length
    rounds = [mutations(artifact, count, seed, relinked=relinked) for artifact in inner]
    for number in range(count):
        which = number % len(inner)
        words, artifact = next(rounds[which])
        programs = [artifact if i == which else other for i, other in enumerate(inner)]
        copy = json.loads(json.dumps(rows))
        for row, program in zip(copy["branches"], programs, strict=True):
            row[1] = len(program)
        if number % 5 == 0:
            place = rng.choice(list(leaves(copy)))
            words, copy = f"{place}", changed(copy, place, rng.choice((*PLAIN, *OTHER)))
            programs = inner
        text = json.dumps(copy).encode()
        packed = b"".join([struct.pack("<I", len(text)), text, *programs])
        yield (
            f"branch {which}: {words}",
            signed(data, changed(header, ("program", "steps", step, 2), packed.hex()), relinked=True),
        )


def _at(header: Any, path: Path_) -> Any:
    for key in path:
        header = header[key]
    return header


def _wrong(old: Any, rng: random.Random, header: Any, places: Sequence[Path_]) -> Any:
    kind = rng.random()
    if type(old) is int and kind < 0.5:
        return rng.choice((*PLAIN, old + 1, old - 1, 2 * old, 2 * old + 8, -old, old + 64, old + 4096, old // 2))
    if isinstance(old, list) and kind < 0.5:
        return rng.choice((list(reversed(old)), old[:-1], [*old, *old[-1:]], old * 50, [old]))
    if kind < 0.65:
        return rng.choice(SIZES)
    if kind < 0.8:  # something that is right elsewhere
        return json.loads(json.dumps(_at(header, rng.choice(places))))
    return rng.choice((*PLAIN, *OTHER))


def outcomes(
    cases: Sequence[bytes], folder: Path, feeds: Mapping[str, Any], expected: Mapping[str, Any], threads: int = 1
) -> list[str]:
    """What loading and running each artifact twice comes to. A process of its own does one after the other; another
    goes on where it dies."""
    found: list[str] = []
    while len(found) < len(cases):
        answers, end = _from_child(cases[len(found) :], folder, feeds, expected, threads)
        found += answers
        if len(found) < len(cases):
            found.append(end)
    return found


def _from_child(
    cases: Sequence[bytes], folder: Path, feeds: Mapping[str, Any], expected: Mapping[str, Any], threads: int
) -> tuple[list[str], str]:
    """The answers of one process, and how it ended."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        try:
            for case in cases:
                signal.alarm(_SECONDS)
                os.write(
                    write,
                    _result(case, folder, feeds, expected, threads).encode(errors="replace")[:300].replace(b"\n", b" ")
                    + b"\n",
                )
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as answers:
        lines = answers.read().decode(errors="replace").splitlines()
    _, status = os.waitpid(child, 0)
    return lines, f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else "gone"


def _result(data: bytes, folder: Path, feeds: Mapping[str, Any], expected: Mapping[str, Any], threads: int) -> str:
    path = folder / f"mutated-{os.getpid()}.fuse"
    path.write_bytes(data)
    try:
        program = fuseline.load(path, threads=threads, verify=True)
        program.run(feeds)
        outputs = program.run(feeds)
        same = outputs.keys() == expected.keys() and all(_equal(outputs[name], expected[name]) for name in expected)
        return "same" if same else "other"
    except fuseline.FuselineError as error:
        return error.code if error.code != "E0901" else f"leaked {error}"
    except BaseException as error:  # noqa: BLE001 - what leaks is what is asked about
        return f"leaked {error!r}"


def _equal(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, list):
        return isinstance(found, list) and len(found) == len(wanted) and all(map(_equal, found, wanted))  # pyright: ignore[reportUnknownArgumentType]
    return np.array_equal(np.asarray(found), np.asarray(wanted))
