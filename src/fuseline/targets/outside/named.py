"""A target from outside by the name that a user gives: `npu:4x4`, `./npu.py:4x4`."""

from __future__ import annotations

import os
from pathlib import Path

from fuseline.errors import FuselineError
from fuseline.targets.outside.checked_target import CheckedTarget
from fuseline.targets.outside.loading import Maker, installed, is_path, maker_at, maker_named


def create_outside(name: str, threads: int | None, numerics: str, builtin: tuple[str, ...]) -> CheckedTarget:
    """The target behind a name or path that is none of those `builtin`. Raises E0501 where there is none, and what
    loading and making it raise."""
    maker, variant = outside_maker(name, builtin)
    return maker.make(variant or None, threads, numerics)


def outside_maker(name: str, builtin: tuple[str, ...]) -> tuple[Maker, str]:
    """What makes the target, and the variant that is asked for (empty: none)."""
    place, variant = split_name(name)
    if is_path(name):
        return maker_at(Path(place), place), variant
    maker = maker_named(place, builtin)
    if maker is None:
        names = dict.fromkeys((*builtin, *(entry.name for entry in installed())))
        hint = f"use one of {', '.join(names)}, or the path of a target's code{_meant(place)}"
        raise FuselineError("E0501", f"no target is called {name!r}", hint=hint)
    return maker, variant


def split_name(name: str) -> tuple[str, str]:
    """The name or path, and the variant behind the first colon that a path does not have itself.

    >>> split_name("npu:4x4"), split_name("./npu.py"), split_name("npu:a:b")
    (('npu', '4x4'), ('./npu.py', ''), ('npu', 'a:b'))
    """
    if is_path(name):
        cuts = [place for place, char in enumerate(name) if char == ":"]
        for cut in (len(name), *reversed(cuts)):
            if os.path.exists(name[:cut]):
                return name[:cut], name[cut + 1 :]
    place, _, variant = name.partition(":")
    return place, variant


def _meant(place: str) -> str:
    """A folder or file of that name may be what was meant."""
    if os.path.isdir(place):
        return f", such as ./{place}"
    return f", such as {place}.py" if os.path.isfile(f"{place}.py") else ""
