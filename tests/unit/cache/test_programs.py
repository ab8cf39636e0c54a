"""Programs from the cache: the same answers and records, or a compile; never a failure, nor another's numbers."""

import json
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import fuseline
from fuseline.cache import digests, folder
from tests.graphs.onnx_text import onnx_model

X = np.random.default_rng().normal(size=(3, 4)).astype(np.float32)


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FUSELINE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("FUSELINE_NO_CACHE", raising=False)
    monkeypatch.setattr(digests, "GRAIN_SECONDS", 0.0)
    return tmp_path / "cache"


def model(factor: float) -> onnx.ModelProto:
    return onnx_model(f"(float[n, 4] x) => (float[n, 4] y) <float[4] c = {{1., {factor}, 3., 4.}}> {{ y = Mul(x, c) }}")


def saved(path: Path, factor: float) -> Path:
    onnx.save(model(factor), path)
    time.sleep(0.02)  # longer than the grain of the file system's clock
    return path


def external(path: Path, values: Any) -> Path:
    """A model that adds a vector which lies in a file of its own."""
    added = onnx_model("(float[n, 4] x) => (float[n, 4] y) { y = Add(x, c) }", opset=17, c=np.float32(values))
    onnx.save(added, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    time.sleep(0.02)
    return path


def compiled(source: Any, **choices: Any) -> tuple[bool, np.ndarray[Any, Any]]:
    program = fuseline.compile(source, threads=1, **choices)
    return program.from_cache, program.run({"x": X})["y"]


def test_the_second_compile_finds_what_the_first_made(tmp_path: Path):
    path = saved(tmp_path / "m.onnx", 2)
    first, second = fuseline.compile(path, threads=1), fuseline.compile(path, threads=1)
    assert (first.from_cache, second.from_cache) == (False, True)
    np.testing.assert_array_equal(first(X), second(X))
    assert first.stats == second.stats and first.decisions == second.decisions and first.plan == second.plan
    assert first.to_bytes() == second.to_bytes()


def test_models_in_memory_and_copies_are_found_by_content_under_their_own_names(tmp_path: Path):
    path = saved(tmp_path / "m.onnx", 2)
    assert [compiled(model(2))[0], compiled(model(2))[0], compiled(model(3))[0]] == [False, True, False]
    assert not compiled(path)[0]
    copy = Path(shutil.copy(path, tmp_path / "copy.onnx"))
    time.sleep(0.02)
    found = fuseline.compile(copy, threads=1)
    assert found.from_cache and found.record.model == str(copy)


@pytest.mark.parametrize("choices", [{"threads": 2}, {"shapes": {"n": 3}}, {"numerics": "strict"}, {"fusion": "none"}])
def test_other_choices_are_other_programs(choices: dict[str, Any], tmp_path: Path):
    path = saved(tmp_path / "m.onnx", 2)
    fuseline.compile(path)
    assert [fuseline.compile(path, **choices).from_cache for _ in range(2)] == [False, True]


def test_a_changed_model_is_compiled_even_under_the_old_name_size_and_time(tmp_path: Path):
    path = saved(tmp_path / "m.onnx", 2)
    compiled(path)
    status = path.stat()
    saved(path, 5)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    time.sleep(0.02)
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (status.st_size, status.st_mtime_ns)
    found, y = compiled(path)
    assert not found
    np.testing.assert_array_equal(y, X * np.array([1, 5, 3, 4], np.float32))


def test_changed_external_data_is_seen(tmp_path: Path):
    path = external(tmp_path / "m.onnx", [1, 2, 3, 4])
    assert [compiled(path)[0], compiled(path)[0]] == [False, True]
    external(path, [5, 6, 7, 8])
    found, y = compiled(path)
    assert not found
    np.testing.assert_array_equal(y, X + np.array([5, 6, 7, 8], np.float32))
    (tmp_path / "weights.bin").unlink()
    with pytest.raises(fuseline.FuselineError, match="missing"):
        compiled(path)


def test_what_changed_since_the_compile_began_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = saved(tmp_path / "m.onnx", 2)
    monkeypatch.setattr(time, "time", lambda: path.stat().st_ctime - 1)
    assert [compiled(path)[0], compiled(path)[0]] == [False, False]


@pytest.mark.parametrize("which", ["cut", "header", "constants", "empty", "notes", "text", "gone", "folder"])
def test_a_damaged_entry_is_made_again(which: str, tmp_path: Path, place: Path):
    path = saved(tmp_path / "m.onnx", 2)
    _, wanted = compiled(path)
    (entry,) = (place / "programs").glob("*.fuse")
    (notes,) = (place / "programs").glob("*.json")
    data = entry.read_bytes()
    damage: dict[str, Any] = {
        "cut": lambda: entry.write_bytes(data[:-1]),
        "header": lambda: entry.write_bytes(data[:100] + b"?" + data[101:]),
        "constants": lambda: entry.write_bytes(data[:-16] + os.urandom(16)),
        "empty": lambda: entry.write_bytes(b""),
        "notes": lambda: notes.write_text("{}"),
        "text": lambda: notes.write_bytes(bytes([255, 0])),
        "gone": entry.unlink,
        "folder": lambda: (entry.unlink(), entry.mkdir()),
    }
    damage[which]()
    found, y = compiled(path)
    assert not found
    np.testing.assert_array_equal(y, wanted)
    if which != "folder":
        assert compiled(path)[0]


def test_an_entry_copied_with_other_times_is_checked_whole_and_taken(tmp_path: Path, place: Path):
    path = saved(tmp_path / "m.onnx", 2)
    compiled(path)
    (entry,) = (place / "programs").glob("*.fuse")
    os.utime(entry, (1, 1))
    assert compiled(path)[0]


def test_another_users_entry_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = saved(tmp_path / "m.onnx", 2)
    compiled(path)
    uid = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: uid + 1)
    assert not compiled(path)[0]


@pytest.mark.parametrize("how", ["option", "variable", "limit", "file", "full"])
def test_without_a_cache_everything_is_compiled(how: str, tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch):
    path = saved(tmp_path / "m.onnx", 2)
    if how == "variable":
        monkeypatch.setenv("FUSELINE_NO_CACHE", "programs")
    if how == "limit":
        monkeypatch.setenv("FUSELINE_CACHE_SIZE", "0")
    if how == "file":
        place.write_text("no folder")
    if how == "full":
        monkeypatch.setattr("shutil.disk_usage", lambda path: type("usage", (), {"free": 10}))  # pyright: ignore
    choices = {"cache": False} if how == "option" else {}
    assert [compiled(path, **choices)[0] for _ in range(2)] == [False, False]
    assert how == "file" or not list(place.glob("programs/*"))


def test_a_disk_that_fills_up_leaves_nothing(tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch):
    path = saved(tmp_path / "m.onnx", 2)

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("fuseline.runtime.artifact.Artifact.write", full)
    assert not compiled(path)[0] and list((place / "programs").iterdir()) == []


def test_installed_rules_keep_a_program_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = saved(tmp_path / "m.onnx", 2)
    monkeypatch.setattr("fuseline.api._installed_rules", lambda: True)
    assert [compiled(path)[0] for _ in range(2)] == [False, False]


def test_many_compiles_at_once_fill_one_cache(tmp_path: Path, place: Path):
    paths = [saved(tmp_path / f"{i}.onnx", i + 1) for i in range(2)]
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda i: compiled(paths[i % 2])[1], range(12)))
    for i, y in enumerate(answers):
        np.testing.assert_array_equal(y, X * np.array([1, i % 2 + 1, 3, 4], np.float32))
    assert sorted(entry.path.suffix for entry in folder.entries() if entry.path.parent.name == "programs") == [
        *[".fuse"] * 2,
        *[".json"] * 2,
    ]


HIT = """
import sys, fuseline
program = fuseline.compile(sys.argv[1], threads=1)
heavy = {"xdsl", "onnx", "onnx_ir", "llvmlite", "sympy", "rich", "click", "msgspec"} & set(sys.modules)
print(program.from_cache, sorted(heavy))
"""


def test_a_hit_imports_nothing_of_the_compiler(tmp_path: Path):
    path = saved(tmp_path / "m.onnx", 2)
    runs = [
        subprocess.run([sys.executable, "-c", HIT, path], check=True, capture_output=True, text=True, timeout=200)
        for _ in range(2)
    ]
    assert runs[0].stdout.startswith("False") and runs[1].stdout.strip() == "True []"


def test_the_command_says_where_a_program_came_from(tmp_path: Path):
    path = saved(tmp_path / "m.onnx", 2)

    def ran(*arguments: str) -> str:
        command = [sys.executable, "-m", "fuseline", "compile", str(path), "--threads", "1", *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=200).stdout

    assert "from the cache" not in ran() and "from the cache" in ran() and "from the cache" not in ran("--no-cache")
    assert json.loads(ran("--json"))["from_cache"] is True
