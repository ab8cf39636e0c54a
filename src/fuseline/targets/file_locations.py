"""Where an entry of a TOML file stands, for messages: `npu.toml:7`. The standard library's reader keeps no lines, so
that the text is looked through again."""

from __future__ import annotations

import re
from pathlib import Path

_HEADER = re.compile(r"\s*\[\s*([\w.\"'-]+)\s*\]")
_ENTRY = re.compile(r"\s*([\w.\"'-]+)\s*=")


def location_of(path: Path, table: str, key: str = "", item: object = None, *, short: bool = False) -> str:
    """`path:line` of the entry `key` in `table` (names with dots, empty for the file's own); of an array, that of
    `item`; of a table without a key, its heading. The path alone where it is not found. `short`: without the folder."""
    name = path.name if short else str(path)
    try:
        line = _line_of(path.read_text(encoding="utf-8"), table, key, item)
    except (OSError, UnicodeDecodeError):
        line = None
    return name if line is None else f"{name}:{line}"


def _line_of(text: str, table: str, key: str, item: object) -> int | None:
    """The number of the line, from 1; that of the last entry around it where it is written inside of one."""
    wanted, here, around = f"{table}.{key}".strip("."), "", None
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        header, entry = _HEADER.match(line), _ENTRY.match(line)
        if header is not None:
            here, inside = _plain(header[1]), _plain(header[1]) == wanted
            around = number if inside else around
        elif entry is not None:
            full = f"{here}.{_plain(entry[1])}".strip(".")
            inside = full == wanted
            around = number if inside or (around is None and wanted.startswith(f"{full}.")) else around
        if inside and item is not None and re.search(rf"[\"']{re.escape(str(item))}[\"']", line):
            return number
    return around


def _plain(name: str) -> str:
    return name.replace('"', "").replace("'", "")
