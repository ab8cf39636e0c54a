"""Models named on a command line by files, folders and globs: each once, by the path below what they have in common."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuseline.cli.model_files import is_one_file, model_files
from fuseline.errors import FuselineError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("a/one.onnx", "a/deep/two.mlir", "b/three.fuse", "b/notes.txt", "b/[odd].onnx"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


def test_a_folder_stands_for_the_models_below(folder: Path) -> None:
    assert list(model_files([folder])) == ["a/deep/two.mlir", "a/one.onnx", "b/[odd].onnx", "b/three.fuse"]
    assert list(model_files([folder / "a"])) == ["deep/two.mlir", "one.onnx"]


def test_names_are_below_what_files_have_in_common(folder: Path) -> None:
    found = model_files([folder / "a", folder / "b" / "three.fuse"])
    assert list(found) == ["a/deep/two.mlir", "a/one.onnx", "b/three.fuse"]
    assert all(path.exists() for path in found.values())


def test_a_glob_and_a_name_that_only_looks_like_one(folder: Path) -> None:
    assert list(model_files([folder / "*" / "*.onnx"])) == ["a/one.onnx", "b/[odd].onnx"]
    assert list(model_files([folder / "b" / "[odd].onnx"])) == ["[odd].onnx"]


def test_a_file_named_twice_is_one(folder: Path) -> None:
    assert list(model_files([folder / "a", folder / "a" / "one.onnx"])) == ["deep/two.mlir", "one.onnx"]


@pytest.mark.parametrize("name", ["nothing", "b/*.mlir"])
def test_a_set_without_models_is_refused(folder: Path, name: str) -> None:
    (folder / "nothing").mkdir()
    with pytest.raises(FuselineError, match="no models there") as caught:
        model_files([folder / name])
    assert caught.value.code == "E0101" and name in str(caught.value.node)


def test_one_file_is_one_whether_there_or_not(folder: Path) -> None:
    assert is_one_file([folder / "a" / "one.onnx"]) and is_one_file([folder / "missing.onnx"])
    assert is_one_file([folder / "b" / "[odd].onnx"])
    assert not is_one_file([folder]) and not is_one_file([folder / "*.onnx"]) and not is_one_file([folder, folder])
