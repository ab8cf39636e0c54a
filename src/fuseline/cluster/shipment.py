"""Files that work on other machines needs, by content: a model with its external data, a plan, rules, a target.

/home/me/m/model.onnx  ┐                          worker: the same content at the same place?  that is read
/home/me/m/model.data  ┘ ── names, digests ──>            no: <cache>/shipped/<digest>/model.onnx, .../model.data
"""

from __future__ import annotations

import hashlib
import os
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from fuseline.cache.digests import file_digest
from fuseline.errors import FuselineError

_WEIGHTS = re.compile(r'fuseline\.weights = \{file = "([^"]+)"')


class ShippedFile(msgspec.Struct, frozen=True):
    """A file by its `name` below the shipment's folder (with `/`), the SHA-256 of its content, and its bytes."""

    name: str
    digest: str
    bytes: int


class Shipment(msgspec.Struct, frozen=True):
    """Files that lie in one folder, as the sender has them: `main` is the one that is meant (or the folder itself, if
    empty), the others are read with it."""

    folder: str
    main: str
    files: tuple[ShippedFile, ...]

    @property
    def digest(self) -> str:
        """Of all names and contents; the same wherever they come from."""
        text = "\n".join(f"{file.digest} {file.name}" for file in self.files)
        return hashlib.sha256(f"{self.main}\n{text}".encode()).hexdigest()


def shipment(path: Path, beside: Iterable[str] = ()) -> Shipment:
    """A file, with those `beside` it by their name in its folder. Raises E0101 where one cannot be read."""
    file = Path(os.path.abspath(path))
    names = dict.fromkeys((file.name, *(name for name in beside if _is_below(file.parent, name))))
    return Shipment(str(file.parent), file.name, tuple(_file(file.parent, name) for name in names))


def model_shipment(path: Path) -> Shipment:
    """A model, or an artifact, with the files that hold its weights. One that cannot be read is sent as it is: the
    worker says what is wrong with it. Raises E0101 where a file is not there."""
    return shipment(path, _weights_beside(path))


def folder_shipment(path: Path) -> Shipment:
    """A folder with the Python files in it."""
    directory = Path(os.path.abspath(path))
    names = sorted(
        found.relative_to(directory).as_posix() for found in directory.rglob("*") if found.suffix in (".py", ".toml")
    )
    return Shipment(str(directory), "", tuple(_file(directory, name) for name in names))


def target_shipment(path: Path) -> Shipment:
    """The code or the description of a target, with the rules that a description names."""
    if path.is_dir():
        return folder_shipment(path)
    return shipment(path, _rules_of(path) if path.suffix == ".toml" else ())


def _file(folder: Path, name: str) -> ShippedFile:
    path = folder / name
    try:
        return ShippedFile(name, file_digest(path), path.stat().st_size)
    except OSError as error:
        raise FuselineError(
            "E0101", f"cannot read: {error.strerror or error}", node=str(path), hint="check the path"
        ) from error


def _is_below(folder: Path, name: str) -> bool:
    """Whether a file belongs to the folder and is there: others are refused where the model is read."""
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts and (folder / name).is_file()


def _weights_beside(path: Path) -> tuple[str, ...]:
    if path.suffix == ".mlir":
        with path.open(encoding="utf-8", errors="replace") as file:
            return tuple(_WEIGHTS.findall(file.read(1 << 16)))
    if path.suffix == ".fuse":
        return ()
    from fuseline.frontends.onnx.check_tensors import external_files
    from fuseline.frontends.onnx.model_file import open_model

    try:
        return external_files(open_model(path).split.proto)
    except FuselineError:
        return ()


def _rules_of(path: Path) -> list[str]:
    try:
        fusion: Any = tomllib.loads(path.read_text(encoding="utf-8")).get("fusion")
    except (OSError, ValueError, RecursionError):
        return []
    rules: Any = fusion.get("rules") if isinstance(fusion, dict) else None
    return [name for name in rules if isinstance(name, str)] if isinstance(rules, list) else []
