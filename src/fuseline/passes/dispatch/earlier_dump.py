"""What an earlier `--dump-dispatches` left in a folder, so that a folder holds the dispatches of one program."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

from fuseline.errors import FuselineError
from fuseline.passes.dispatch.dispatch_programs import INDEX


def earlier_files(folder: Path) -> list[Path]:
    """The files that the index of `folder` lists, none where it has no index. Raises FuselineError: E0502 for an index
    that is none of a dump, and would be overwritten."""
    index = folder / INDEX
    if not index.is_file():
        return []
    try:
        listed = _listed(json.loads(index.read_text(encoding="utf-8")))
    except (ValueError, TypeError, LookupError):
        message, hint = "it is no index of dispatches", "move that file, or give another folder"
        raise FuselineError("E0502", message, node=str(index), hint=hint) from None
    return [folder / name for name in listed]


def _listed(index: Any) -> list[str]:
    """The names of files that an index has, without any that leave its folder."""
    names = [str(one["file"]) for one in index["dispatches"]]
    return [name for name in names if Path(name).name == name and name.endswith(".mlir")]


def remove_earlier(earlier: Collection[Path], written: Collection[str]) -> None:
    """Remove of the `earlier` files those that are none of the names `written`; what cannot be removed stays."""
    for path in earlier:
        if path.name not in written:
            try:
                path.unlink(missing_ok=True)
            except OSError:
                continue
