"""The cache of objects: what is damaged, another's or no object is dropped and made again; a full disk leaves nothing
behind."""

from __future__ import annotations

import hashlib
import resource
from collections.abc import Callable
from pathlib import Path

import pytest

from fuseline.runtime.cpu import machine_name
from fuseline.targets.cpu.isa import machine
from fuseline.targets.cpu.link.compile import compile_texts

MACHINE = machine("baseline" if machine_name() == "x86_64" else "neon")
TEXTS = [f"define void @kernel_{i}(ptr %p) {{ store i64 {i}, ptr %p\n ret void }}" for i in range(3)]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FUSELINE_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache" / "objects"


def _flipped(content: bytes) -> bytes:
    return content[:100] + bytes([content[100] ^ 1]) + content[101:]


@pytest.mark.parametrize(
    "damage",
    [
        lambda files: {file: _flipped(content) for file, content in files.items()},
        lambda files: {file: content[:50] for file, content in files.items()},
        lambda files: dict.fromkeys(files, b""),
        lambda files: dict(zip(files, [*list(files.values())[1:], next(iter(files.values()))], strict=True)),
        lambda files: {file: hashlib.sha256(file.name.encode() + b"garbage").digest() + b"garbage" for file in files},
    ],
    ids=["flipped", "cut", "empty", "swapped", "no object"],
)
def test_what_does_not_load_is_made_again(damage: Callable[[dict[Path, bytes]], dict[Path, bytes]], cache: Path):
    expected = compile_texts(TEXTS, MACHINE)
    kept = {file: file.read_bytes() for file in sorted(cache.iterdir())}
    assert len(kept) == len(TEXTS)
    for file, content in damage(kept).items():
        file.write_bytes(content)
    assert compile_texts(TEXTS, MACHINE) == expected
    assert {file: file.read_bytes() for file in sorted(cache.iterdir())} == kept


def test_what_is_whole_is_taken_from_the_cache(cache: Path, monkeypatch: pytest.MonkeyPatch):
    from fuseline.targets.cpu.link import compile as module

    expected = compile_texts(TEXTS, MACHINE)
    monkeypatch.setattr(module, "emit_object", None)
    assert compile_texts(TEXTS, MACHINE) == expected


def test_a_full_disk_leaves_no_file_behind(cache: Path):
    expected = compile_texts(TEXTS, MACHINE, use_cache=False)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        assert compile_texts(TEXTS, MACHINE) == expected
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list(cache.iterdir()) == []


@pytest.mark.parametrize("kind", ["file", "nowhere"])
def test_a_cache_that_cannot_be_does_without(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("FUSELINE_CACHE_DIR", str(tmp_path / "file") if kind == "file" else "/proc/nowhere")
    assert compile_texts(TEXTS, MACHINE) == compile_texts(TEXTS, MACHINE, use_cache=False)
