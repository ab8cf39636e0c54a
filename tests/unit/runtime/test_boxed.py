"""Values that are boxed instead of lying in memory: strings, small floats, sequences, optionals and maps."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from fuseline.buffers import BufferRef, Operand
from fuseline.errors import FuselineError
from fuseline.runtime import Session, TensorSpec, host, load
from fuseline.runtime.boxed import admit_boxed
from fuseline.runtime.program import HostCall, program_from_json, program_to_json
from fuseline.runtime.references import check_references

N = ("sum", ((1, "n"),))
BOXED = [Operand(BufferRef("boxed", i), (), "object") for i in range(3)]
X, Y = BufferRef("input", 1), BufferRef("output", 1)


def _vector(place: BufferRef) -> Operand:
    return Operand(place, (N,), "float32")


def _session(kit: Any) -> Session:
    """Words and numbers: the words are repeated, joined to the doubled numbers, and the numbers come back doubled once
    more."""

    def repeat(node: bytes, inputs: Sequence[Any]) -> list[Any]:
        return [inputs[0] * 2]

    def join(node: bytes, inputs: Sequence[Any]) -> list[Any]:
        words, numbers = inputs
        return [[f"{word}{number:.0f}" for word, number in zip(words, numbers, strict=True)], numbers * 2]

    host.register("test-repeat", repeat)
    host.register("test-join", join)
    first, second = BufferRef("arena", 0, 0), BufferRef("arena", 0, 4096)
    grid = ("sum", ((1, ("div", ("sum", ((1, "n"), (15,))), 16)),))
    steps = [
        kit.command("double", [X, first], N, grid),
        HostCall("test-repeat", b"", (BOXED[0],), (BOXED[1],)),
        HostCall("test-join", b"", (BOXED[1], _vector(first)), (BOXED[2], _vector(second))),
        kit.command("copy", [second, Y], ("sum", ((4, "n"),)), 1),
    ]
    inputs = [TensorSpec("words", "object", (N,), 0, "tensor(string)"), TensorSpec("x", "float32", (N,))]
    outputs = [TensorSpec("joined", "object", (), 2, "seq(tensor(string))"), TensorSpec("y", "float32", (N,))]
    return Session(kit.artifact(inputs, outputs, steps, arena_bytes=8192, slots=3))


def test_held_values_pass_between_calls_and_native_code(kit: Any, tmp_path: Path) -> None:
    session = _session(kit)
    session.artifact.save(tmp_path / "m.fuse")
    for one in (session, load(tmp_path / "m.fuse")):
        for count in (2, 33, 2):
            words, x = [chr(97 + i % 26) for i in range(count)], np.arange(1, count + 1, dtype=np.float32)
            out = one.run({"words": words, "x": x})
            assert out["joined"] == [f"{word}{word}{2 * number:.0f}" for word, number in zip(words, x, strict=True)]
            np.testing.assert_array_equal(out["y"], 4 * x)


def test_sizes_of_held_tensors_are_checked(kit: Any) -> None:
    with pytest.raises(FuselineError, match=r"E0203 \[x\].*\(n\) is 3, but 2 in feed 'words'"):
        _session(kit).run({"words": ["a", "b"], "x": np.ones(3, np.float32)})
    with pytest.raises(FuselineError, match=r"E0203 \[words\]"):
        _session(kit).run({"words": [["a"]], "x": np.ones(1, np.float32)})


TAKEN: list[tuple[str, Any, Any]] = [
    ("tensor(string)", np.array(["a", "bc"]), ["a", "bc"]),
    ("tensor(string)", np.array([b"\xc3\xa9"]), ["é"]),
    ("seq(tensor(float32))", (np.ones(1, np.float32),), [[1.0]]),
    ("optional(tensor(int64))", None, None),
    ("optional(seq(tensor(int64)))", [np.array(3)], [3]),
    ("any_rank(tensor(bool))", np.array([[True]]), [[True]]),
    ("map(int64, tensor(float32))", {1: 2.0}, {1: 2.0}),
    ("any", 5, 5),
]


@pytest.mark.parametrize(("type_", "feed", "wanted"), TAKEN)
def test_feeds_that_fit(type_: str, feed: Any, wanted: Any) -> None:
    found = admit_boxed("x", type_, feed)
    plain = (
        found.tolist()
        if isinstance(found, np.ndarray)
        else [x.tolist() for x in found]
        if isinstance(found, list)
        else found
    )
    assert plain == wanted


def test_small_types_come_as_ml_dtypes_or_as_npy_files_hold_them(tmp_path: Path) -> None:
    x = np.array([1.5, -2], ml_dtypes.float8_e4m3fn)
    np.save(tmp_path / "x.npy", x)
    read = np.load(tmp_path / "x.npy")
    for feed in (x, read):
        assert admit_boxed("x", "tensor(float8_e4m3fn)", feed).astype(np.float32).tolist() == [1.5, -2]


def _endless() -> list[Any]:
    inside: list[Any] = []
    inside.append(inside)
    return inside


REFUSED: list[tuple[str, Any]] = [
    ("tensor(string)", np.ones(2)),
    ("tensor(string)", np.array(["a", 1], object)),
    ("tensor(int4)", np.ones(2, np.int8)),
    ("tensor(float8_e4m3fn)", np.ones(2, ml_dtypes.float8_e5m2)),
    ("seq(tensor(float32))", np.ones(2, np.float32)),
    ("seq(tensor(float32))", [np.ones(2)]),
    ("map(string, tensor(float32))", [1]),
    ("optional(tensor(float32))", "a"),
    ("any_rank(tensor(float32))", np.ones(2)),
    ("tensor(string)", [["a"], ["b", "c"]]),
    ("any", _endless()),
    ("seq(tensor(float32))", _endless()),
]


@pytest.mark.parametrize(("type_", "feed"), REFUSED)
def test_feeds_that_do_not_fit(type_: str, feed: Any) -> None:
    with pytest.raises(FuselineError, match=r"E0204 \[x\]"):
        admit_boxed("x", type_, feed)


def test_slots_survive_the_file_format_and_must_exist(kit: Any) -> None:
    artifact = _session(kit).artifact
    program = artifact.program
    assert program_from_json(json.loads(json.dumps(program_to_json(program)))) == program
    sizes = [len(constant) for constant in artifact.constants]
    for broken in (program._replace(slots=2), program._replace(slots=0)):
        with pytest.raises(ValueError, match="does not exist"):
            check_references(broken, len(artifact.code), artifact.entries, sizes)
