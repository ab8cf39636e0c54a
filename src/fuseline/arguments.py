"""Arguments of the interface, read strictly: each function takes what makes sense and refuses the rest by the
argument's name."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from operator import index
from pathlib import Path
from typing import Any, cast

from fuseline.errors import FuselineError
from fuseline.runtime.abi import MAX_THREADS


def wrong(option: str, value: object, wanted: str) -> FuselineError:
    """The error (E0501) for an option with a value that it does not take."""
    return FuselineError("E0501", f"{option} is {_short(value)}, must be {wanted}")


def thread_count(threads: object) -> int | None:
    """A number of threads, None for as many as there are processors; raises FuselineError (E0501) for anything else."""
    if threads is None:
        return None
    try:
        if isinstance(threads, bool):
            raise TypeError
        count = index(cast(Any, threads))
    except TypeError as error:
        raise wrong("threads", threads, "a whole number, or None for the machine's processors") from error
    if not 1 <= count <= MAX_THREADS:
        raise wrong("threads", threads, f"in 1..{MAX_THREADS}")
    return count


def path_option(option: str, value: object) -> Path:
    """A path; raises FuselineError (E0501) for what cannot be one."""
    text: object = os.fspath(cast("str", value)) if isinstance(value, str | os.PathLike) else None
    if not isinstance(text, str) or "\0" in text:
        raise wrong(option, value, "the path of a file")
    return Path(text)


def key_list(keys: object) -> list[Any] | None:
    """A list of keys, or None; raises FuselineError (E0501) for anything else, one key included."""
    if keys is None:
        return None
    if not isinstance(keys, list | tuple):
        raise wrong("trusted", keys, "a list of keys")
    return list(cast("Sequence[object]", keys))


def paths(option: str, value: object) -> tuple[Path, ...]:
    """A list of paths; raises FuselineError (E0501) for anything else, one path included."""
    if isinstance(value, str | bytes | os.PathLike) or not isinstance(value, Sequence):
        raise wrong(option, value, "a list of paths")
    return tuple(path_option(option, item) for item in cast("Sequence[object]", value))


def names(option: str, value: object) -> tuple[str, ...]:
    """A list of names; raises FuselineError (E0501) for anything else, one name included."""
    items = tuple(cast("Sequence[object]", value)) if isinstance(value, list | tuple) else None
    if items is None or not all(isinstance(item, str) for item in items):
        raise wrong(option, value, "a list of names")
    return cast("tuple[str, ...]", items)


def mapping(option: str, value: object) -> Mapping[str, Any] | None:
    """A mapping or None; raises FuselineError (E0501) for anything else."""
    if value is not None and not isinstance(value, Mapping):
        raise wrong(option, value, "a mapping from the name of an input or a size to its extents")
    return cast("Mapping[str, Any] | None", value)


def nested(option: str, value: object) -> Mapping[str, Mapping[str, Any]]:
    """Mappings by name, none for None; raises FuselineError (E0501) for anything else."""
    found = cast("Mapping[object, object]", {} if value is None else value)
    if not isinstance(cast("object", found), Mapping) or not all(
        isinstance(name, str) and isinstance(inner, Mapping) for name, inner in found.items()
    ):
        raise wrong(option, value, "a mapping from names to mappings")
    return cast("Mapping[str, Mapping[str, Any]]", found)


def kernel_texts(option: str, value: object) -> Mapping[str, str]:
    """Choices for kernels by class, none for None; raises FuselineError (E0501) for anything else, naming the entry
    whose text is no choice."""
    from fuseline.ir.kernel_choice import DEFAULT, HINT, parse_choice  # the runtime alone has no IR

    found = cast("Mapping[object, object]", {} if value is None else value)
    if not isinstance(cast("object", found), Mapping):
        raise wrong(option, value, "a mapping from classes of kernels to choices")
    for name, text in found.items():
        if not isinstance(name, str) or not isinstance(text, str):
            raise wrong(option, value, "a mapping from classes of kernels to choices")
        if text != DEFAULT and parse_choice(text) is None:
            raise FuselineError("E0501", f"{option} has no choice {_short(text)}", node=name, hint=HINT)
    return cast("Mapping[str, str]", dict(found))


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
