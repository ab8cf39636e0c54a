"""The cache's folder: where, how large, and what goes first."""

import os
from pathlib import Path

import pytest

from fuseline.cache import folder
from fuseline.errors import FuselineError


@pytest.fixture(autouse=True)
def _place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUSELINE_CACHE_DIR", str(tmp_path / "cache"))


def _file(kind: str, name: str, size: int, used: float) -> Path:
    path = folder.private_folder(kind) / name
    path.write_bytes(b"x" * size)
    os.utime(path, (used, used))
    return path


def test_the_folder_is_chosen_or_the_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    assert folder.cache_folder() == tmp_path / "cache"
    monkeypatch.delenv("FUSELINE_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    assert folder.cache_folder() == tmp_path / "home" / "fuseline"


def test_folders_inside_are_their_owners_alone():
    assert folder.private_folder("programs").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("text", "size"), [("", 5 << 30), ("0", 0), ("1234", 1234), ("2G", 2 << 30), ("1.5 kB", 1536), ("3MiB", 3 << 20)]
)
def test_the_limit_is_read(text: str, size: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FUSELINE_CACHE_SIZE", text)
    assert folder.size_limit() == size


@pytest.mark.parametrize("text", ["much", "-1", "1 parsec", "1G2"])
def test_a_limit_that_is_no_size_is_refused(text: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FUSELINE_CACHE_SIZE", text)
    with pytest.raises(FuselineError, match="FUSELINE_CACHE_SIZE") as refused:
        folder.size_limit()
    assert refused.value.code == "E0501"


@pytest.mark.parametrize(
    ("value", "off"),
    [("", []), ("programs", ["programs", "models"]), ("1", [kind for kind in folder.KINDS if kind != folder.SHIPPED])],
)
def test_what_is_off(value: str, off: list[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FUSELINE_NO_CACHE", value)
    assert sorted(kind for kind in folder.KINDS if folder.disabled(kind)) == sorted(off)


def test_what_was_not_needed_for_longest_goes_first_and_an_artifact_goes_with_its_notes():
    old = _file("programs", "a.fuse", 100, used=10), _file("programs", "a.json", 10, used=10)
    touched = _file("programs", "b.fuse", 100, used=5), _file("programs", "b.json", 10, used=50)
    kernel = _file("objects", "c", 100, used=30)
    assert folder.shrink(now=60, limit=320) == 0 and old[0].exists()
    assert folder.shrink(now=60, limit=300) == 110
    assert [path.exists() for path in (*old, *touched, kernel)] == [False, False, True, True, True]
    assert folder.shrink(now=60, limit=130) == 210 and touched[0].exists() == touched[1].exists()


def test_only_abandoned_temporary_files_go():
    fresh, old = _file("objects", ".k.1-a.tmp", 5, used=4000), _file("objects", ".k.2-b.tmp", 7, used=10)
    assert folder.shrink(now=5000, limit=1000) == 7
    assert fresh.exists() and not old.exists()


def test_clear_answers_what_it_dropped():
    _file("objects", "a", 3, used=1)
    _file("programs", "b.fuse", 4, used=1)
    assert folder.clear() == (2, 7) and list(folder.entries()) == [] and folder.clear() == (0, 0)


def test_what_is_too_large_for_the_limit_or_the_disk_has_no_room(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FUSELINE_CACHE_SIZE", "400")
    assert folder.has_room(100) and not folder.has_room(101)
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("usage", (), {"free": 180}))  # pyright: ignore
    assert folder.has_room(89) and not folder.has_room(90)


def test_processes_look_once_a_minute_whether_something_has_to_go(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FUSELINE_CACHE_SIZE", "0")
    first = _file("objects", "a", 3, used=1)
    folder.shrink_sometimes()
    second = _file("objects", "b", 3, used=1)
    folder.shrink_sometimes()
    assert not first.exists() and second.exists()
    os.utime(folder.cache_folder() / "checked", (1, 1))
    folder.shrink_sometimes()
    assert not second.exists()
