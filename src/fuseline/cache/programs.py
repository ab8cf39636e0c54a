"""Finished programs, kept by key: an artifact, and beside it what else it was made from.

    <key>.fuse   the artifact
    <key>.json   {"entry": the artifact's identity when it was written, "files": {name beside the model: digest},
                  "model": what the compile called the model}

An entry counts when both are there. The artifact is read as any other; one that is not as it was written has every
digest checked, constants included. Whatever is wrong with an entry only means that it is not found.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from fuseline.cache.digests import file_digest, identity
from fuseline.cache.folder import has_room, private_folder, shrink_sometimes
from fuseline.errors import FuselineError
from fuseline.runtime.artifact import ARTIFACT_SUFFIX, Artifact, read_artifact
from fuseline.runtime.files import write_file


class Found(NamedTuple):
    """A program that was kept, and what its records call the model."""

    artifact: Artifact
    model: str


def find(key: str, folder: Path | None) -> Found | None:
    """The program kept under `key`, its constants mapped; None where there is none. `folder` is the model's."""
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
        path, notes = _places(key)
        said: dict[str, Any] = json.loads(notes.read_bytes())
        if not _same_files(said["files"], folder):
            return None
        status = os.lstat(path)
        if status.st_uid != os.geteuid():  # it would be somebody else's code
            return None
        artifact = _read(path, notes, unchanged=said["entry"] == identity(status))
        os.utime(notes)
        return None if artifact is None else Found(artifact, str(said["model"]))
    return None


def keep(key: str, artifact: Artifact, model: str, folder: Path | None, files: Iterable[str], *, since: float) -> bool:
    """Keep a program.

    Args:
        model: what its records call the model. files: what else of the model's `folder` was read. since: when the
        compile began (seconds since the epoch).

    Answers whether it is kept: a full or read-only disk, a cache too small, files that went away or changed while they
    were compiled only mean that it is not.
    """
    try:
        external = {name: (folder or Path()) / name for name in sorted(set(files))}
        if _changed([*external.values(), *([] if folder is None else [Path(model)])], since):
            return False
        if not has_room(_bytes_of(artifact)):
            return False
        digests = {name: file_digest(file) for name, file in external.items()}
        path, notes = _places(key)
        write_file(path, artifact.write, durable=False)
        said = {"entry": identity(os.lstat(path)), "files": digests, "model": model}
        write_file(notes, lambda file: file.write(json.dumps(said).encode()), durable=False)
    except (OSError, FuselineError):
        return False
    shrink_sometimes()
    return True


def _places(key: str) -> tuple[Path, Path]:
    folder = private_folder("programs")
    return folder / f"{key}{ARTIFACT_SUFFIX}", folder / f"{key}.json"


def _changed(paths: Iterable[Path], since: float) -> bool:
    return any(max(status.st_mtime, status.st_ctime) > since for status in map(os.stat, paths))


def _same_files(digests: Mapping[str, str], folder: Path | None) -> bool:
    return all(file_digest((folder or Path()) / name) == digest for name, digest in digests.items())


def _read(path: Path, notes: Path, *, unchanged: bool) -> Artifact | None:
    try:
        return read_artifact(path, verify=not unchanged)
    except FuselineError:  # damaged, or written by what had the same key and still differs: made again
        for file in (notes, path):
            with suppress(OSError):
                file.unlink()
        return None


def _bytes_of(artifact: Artifact) -> int:
    programs = [one for one in (artifact, artifact.fallback) if one is not None]
    constants = {id(block): len(block) for one in programs for block in one.constants}
    return sum(len(one.code) + len(one.records) for one in programs) + sum(constants.values())
