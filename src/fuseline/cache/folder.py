"""The cache's folder: where it is, how large it may become, and what is dropped when it is larger."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from fuseline.errors import FuselineError

LASTING = "tuning"
"""What no limit drops: it is small, and hours of a machine went into it."""

SHIPPED = "shipped"
"""What work from elsewhere needs here: kept whatever is off."""

KINDS: tuple[str, ...] = ("objects", "programs", "models", SHIPPED, LASTING)
"""The folders inside."""

DEFAULT_LIMIT = 5 << 30
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?\s*", re.IGNORECASE)

_KEPT_SHARE = 0.8
"""Of the limit, what stays when something is dropped: so that not every compile has to look for more to drop."""
_SECONDS_BETWEEN_CHECKS = 60
_ABANDONED_SECONDS = 3600
"""A temporary file this old belongs to a process that was killed."""


class Entry(NamedTuple):
    """A file of the cache. `used`: when it was last needed, in seconds since the epoch. `kind`: one of `KINDS`."""

    path: Path
    bytes: int
    used: float
    kind: str


def cache_folder() -> Path:
    """`$FUSELINE_CACHE_DIR`, or `fuseline` in the user's cache folder."""
    chosen = os.environ.get("FUSELINE_CACHE_DIR")
    if chosen:
        return Path(chosen)
    import platformdirs

    return Path(platformdirs.user_cache_dir("fuseline"))


def disabled(kind: str) -> bool:
    """Whether `FUSELINE_NO_CACHE` asks that entries of a kind are neither looked up nor kept: `programs` for those (and
    the digests that find them), anything else but the empty text for all."""
    chosen = os.environ.get("FUSELINE_NO_CACHE", "")
    return chosen != "" and kind != SHIPPED and (chosen != "programs" or kind not in ("objects", LASTING))


def size_limit() -> int:
    """Bytes that the cache may take: `$FUSELINE_CACHE_SIZE` (`500MB`, `2G`, a number of bytes; 0: nothing is kept), or
    5 GB. Raises FuselineError (E0501) for other text."""
    text = os.environ.get("FUSELINE_CACHE_SIZE", "")
    if not text:
        return DEFAULT_LIMIT
    found = _SIZE.fullmatch(text)
    if found is None:
        raise FuselineError(
            "E0501", f"FUSELINE_CACHE_SIZE does not say a size: {text!r}", hint="write 500MB, 2G or a number of bytes"
        )
    return int(float(found[1]) * _UNITS[found[2].lower()])


def private_folder(kind: str) -> Path:
    """The folder of a kind of entries, made for this user alone where it is missing."""
    folder = cache_folder() / kind
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def entries(folder: Path | None = None) -> Iterator[Entry]:
    """All files of the cache in `folder` (default: the user's)."""
    for kind in KINDS:
        yield from _files_below((folder or cache_folder()) / kind, kind)


def _files_below(folder: Path, kind: str) -> Iterator[Entry]:
    with suppress(OSError), os.scandir(folder) as found:
        for item in found:
            with suppress(OSError):  # another process may drop it meanwhile
                if item.is_dir(follow_symlinks=False):
                    yield from _files_below(Path(item.path), kind)
                    continue
                status = item.stat(follow_symlinks=False)
                yield Entry(Path(item.path), status.st_size, status.st_mtime, kind)


def clear(folder: Path | None = None) -> tuple[int, int]:
    """Drop everything; answers how many files and bytes. What others have open stays theirs."""
    dropped = [entry for entry in list(entries(folder)) if _drop(entry.path)]
    return len(dropped), sum(entry.bytes for entry in dropped)


def has_room(size: int) -> bool:
    """Whether an entry of `size` bytes is worth keeping: a quarter of the limit at most, and the disk keeps as much
    again."""
    if 4 * size > size_limit():
        return False
    with suppress(OSError):
        return shutil.disk_usage(private_folder("programs")).free > 2 * size
    return False


def shrink(folder: Path | None = None, *, now: float | None = None, limit: int | None = None) -> int:
    """Drop what was not needed for longest until the cache is within its limit, and what killed processes left; answers
    the bytes dropped. An artifact and what is said of it count as one."""
    now, limit = time.time() if now is None else now, size_limit() if limit is None else limit
    found = list(entries(folder))
    abandoned = [e for e in found if e.path.suffix == ".tmp" and now - e.used > _ABANDONED_SECONDS]
    dropped = sum(entry.bytes for entry in abandoned if _drop(entry.path))
    kept = [entry for entry in found if entry.path.suffix != ".tmp"]
    total = sum(entry.bytes for entry in kept)
    if total <= limit:
        return dropped
    for group in _longest_unused_first(entry for entry in kept if entry.kind != LASTING):
        if total <= _KEPT_SHARE * limit:
            break
        gone = sum(entry.bytes for entry in group if _drop(entry.path))
        total, dropped = total - gone, dropped + gone
    return dropped


def shrink_sometimes() -> None:
    """`shrink`, where no process has looked for a minute; what goes wrong is nobody's business."""
    with suppress(OSError, FuselineError):
        stamp = cache_folder() / "checked"
        with suppress(FileNotFoundError):
            if 0 <= time.time() - stamp.stat().st_mtime < _SECONDS_BETWEEN_CHECKS:
                return
        stamp.touch()
        shrink()


def _longest_unused_first(found: Iterable[Entry]) -> list[list[Entry]]:
    """Entries by what they belong to: the files that differ in their suffix only."""
    groups: dict[Path, list[Entry]] = {}
    for entry in found:
        groups.setdefault(entry.path.with_suffix(""), []).append(entry)
    return sorted(groups.values(), key=lambda group: max(entry.used for entry in group))


def _drop(path: Path) -> bool:
    try:
        path.unlink()
    except OSError:
        return False
    return True
