"""Several models as words of a command line: files, folders (all models and artifacts below) and globs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from glob import glob, has_magic
from pathlib import Path

from fuseline.errors import FuselineError

SUFFIXES = (".onnx", ".mlir", ".fuse")


def is_one_file(paths: Sequence[Path]) -> bool:
    """Whether the words name one file, there or not, rather than a set of them."""
    return len(paths) == 1 and not paths[0].is_dir() and not _is_glob(paths[0])


def model_files(paths: Sequence[Path]) -> dict[str, Path]:
    """The files by the name that they have in a table: their path below the folder that they have in common. Files that
    are named themselves may be missing. Raises E0101 for a folder or a glob without models."""
    found = list(dict.fromkeys(file for path in paths for file in _files(path)))
    folders = [path if path.is_dir() else path.parent for path in (paths if len(paths) == 1 else found)]
    if len(paths) == 1 and _is_glob(paths[0]):
        folders = [file.parent for file in found]
    base = os.path.commonpath([os.path.abspath(folder) for folder in folders])
    return {Path(os.path.relpath(os.path.abspath(file), base)).as_posix(): file for file in found}


def _is_glob(path: Path) -> bool:
    return has_magic(str(path)) and not path.exists()


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        found = sorted(file for file in path.rglob("*") if file.suffix in SUFFIXES and file.is_file())
    elif _is_glob(path):
        found = sorted(Path(name) for name in glob(str(path), recursive=True) if Path(name).is_file())
    else:
        return [path]
    if not found:
        raise FuselineError("E0101", "no models there", node=str(path), hint=f"models end in {', '.join(SUFFIXES)}")
    return found
