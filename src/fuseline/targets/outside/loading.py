"""Finding and making targets from outside the tree: `create(variant, threads, numerics)` of the module that a path or
an entry point names. What is wrong is E0801 with the file and line, or the entry and its package."""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import os
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from importlib.metadata import EntryPoint
from pathlib import Path
from threading import RLock
from types import ModuleType
from typing import Any

from fuseline.errors import FuselineError
from fuseline.installed_entries import entry_points
from fuseline.targets.outside.checked_target import CheckedTarget, checked_target
from fuseline.targets.outside.origin import Origin

GROUP = "fuseline.targets"
"""The group of entry points: `npu = "my_package"`, a module with `create`, or `"my_package:create"`."""

_NAME = re.compile(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*")
_WANTED = "a target is a function create(variant, threads, numerics)"
_loading = RLock()


@dataclass(frozen=True, slots=True)
class Maker:
    """What makes a target from outside: `create`, and the first paragraph of its module's documentation."""

    origin: Origin
    create: Callable[..., Any]
    summary: str

    def make(self, variant: str | None, threads: int | None, numerics: str) -> CheckedTarget:
        """The target, its answers checked. Raises E0801 for one of another contract, E0802 for what breaks it."""
        try:
            return checked_target(self.create(variant, threads, numerics), self.origin)
        except MemoryError:
            raise
        except (Exception, SystemExit) as problem:
            raise self.origin.raised("create()", problem) from problem


def is_path(name: str) -> bool:
    """Whether a target is named by the place of its code.

    >>> is_path("npu.py"), is_path("./npu:4x4"), is_path("npu:4x4"), is_path("null:here/npu.toml")
    (True, True, False, False)
    """
    place = name.partition(":")[0]
    return place.endswith(".py") or "/" in place or os.sep in place


def maker_at(path: Path, name: str) -> Maker:
    """What the Python file, or the folder with an `__init__.py`, makes. Raises E0801."""
    file = path / "__init__.py" if os.path.isdir(path) else path
    origin = Origin(name, str(path), path.absolute())
    if not os.path.isfile(file):
        hint = "give a Python file, or a folder with an __init__.py"
        raise FuselineError("E0801", f"no target at {path}", node=str(path), hint=hint)
    try:
        module = _module_at(file.absolute(), path.absolute())
    except (Exception, SystemExit) as problem:
        raise _unloaded(origin, problem) from problem
    return _maker_of(module, origin)


def installed() -> list[EntryPoint]:
    """The entry points of all packages, by name."""
    return sorted(entry_points(group=GROUP), key=lambda entry: (entry.name, entry.value))


def maker_named(name: str, builtin: tuple[str, ...] = ()) -> Maker | None:
    """What the installed target of this name makes; None where no package has one. Raises E0801, for two packages with
    one name as well."""
    found = [entry for entry in installed() if entry.name == name]
    if len(found) > 1:
        message = f"{len(found)} packages have a target of this name: {', '.join(map(package_of, found))}"
        hint = "uninstall one of them, or name the target by the path of its code"
        raise FuselineError("E0801", message, node=name, hint=hint)
    return maker_of_entry(found[0], builtin) if found else None


def maker_of_entry(entry: EntryPoint, builtin: tuple[str, ...] = ()) -> Maker:
    """What an entry point makes. Raises E0801 naming it and its package, for a name that is one of fuseline's own
    (`builtin`) as well."""
    origin = Origin(entry.name, package_of(entry))
    if entry.name in builtin:
        hint = "the package has to give it another name; until then name it by the path of its code"
        raise FuselineError("E0801", f"fuseline has a target {entry.name} of its own", node=origin.said, hint=hint)
    if not _NAME.fullmatch(entry.name):
        hint = "lower-case words and digits, joined by - or _"
        raise FuselineError("E0801", f"{entry.name!r} cannot be the name of a target", node=origin.said, hint=hint)
    try:
        loaded: Any = entry.load()
    except (Exception, SystemExit) as problem:
        raise _unloaded(origin, problem) from problem
    return _maker_of(loaded, Origin(entry.name, origin.source, _root_of(loaded)))


def package_of(entry: EntryPoint) -> str:
    """The entry point as messages name it: its package with its version, and what it stands for."""
    package = entry.dist
    return entry.value if package is None else f"{package.name} {package.version}: {entry.value}"


def _maker_of(loaded: Any, origin: Origin) -> Maker:
    create: Any = getattr(loaded, "create", None) if isinstance(loaded, ModuleType) else loaded
    if not callable(create):
        raise FuselineError("E0801", f"it has no function create: {create!r}", node=origin.said, hint=_WANTED)
    module = loaded if isinstance(loaded, ModuleType) else inspect.getmodule(loaded)
    return Maker(origin, create, summary_of(module))


def _unloaded(origin: Origin, problem: BaseException) -> FuselineError:
    """A missing package of fuseline's own keeps its code, and so does what the target raises by a code."""
    if isinstance(problem, FuselineError):
        return problem
    message = f"it does not load: {type(problem).__name__}: {problem}{origin.place(problem)}"
    return FuselineError("E0801", message, node=origin.said, hint=_WANTED)


def _root_of(loaded: Any) -> Path | None:
    """Where the code behind an entry point lies: the folder of a package, the file of a module."""
    module = loaded if isinstance(loaded, ModuleType) else inspect.getmodule(loaded)
    top = sys.modules.get(getattr(module, "__name__", "").partition(".")[0])
    file = getattr(top, "__file__", None)
    if file is None:
        return None
    return Path(file).parent if hasattr(top, "__path__") else Path(file)


# modules by their path ------------------------------------------------------------------------------------------------


def _module_at(file: Path, place: Path) -> ModuleType:
    """The module of a file, or the package of a folder; loaded once as long as nothing in it changes."""
    name = f"fuseline_target_{re.sub(r'[^0-9a-zA-Z]', '_', place.stem)}_{_digest(place)}"
    with _loading:
        known = sys.modules.get(name)
        return known if known is not None else _executed(name, file, place)


class _FreshLoader(SourceFileLoader):
    """Reads the source, never bytecode that an edit within the same second leaves behind."""

    def path_stats(self, path: Any) -> Any:
        """Raises OSError: there is no bytecode to compare with, nor to be written."""
        raise OSError(path)


def _executed(name: str, file: Path, place: Path) -> ModuleType:
    folders = [str(place)] if place.is_dir() else None
    loader = _FreshLoader(name, str(file))
    spec = importlib.util.spec_from_file_location(name, file, loader=loader, submodule_search_locations=folders)
    assert spec is not None, "there is a loader"
    module = sys.modules[name] = importlib.util.module_from_spec(spec)  # dataclasses look their module up there
    try:
        loader.exec_module(module)
    except BaseException:
        for other in [known for known in sys.modules if known == name or known.startswith(f"{name}.")]:
            del sys.modules[other]
        raise
    return module


def _digest(place: Path) -> str:
    """Of the path and all Python files there."""
    found = hashlib.sha256(str(place).encode())
    for path in sorted(_sources(place)):
        found.update(f"{path}\0".encode() + path.read_bytes())
    return found.hexdigest()[:16]


def _sources(place: Path) -> Iterator[Path]:
    yield from place.rglob("*.py") if place.is_dir() else [place]


def summary_of(module: object) -> str:
    """The first paragraph of its documentation, as one line."""
    return " ".join(str(getattr(module, "__doc__", None) or "").strip().partition("\n\n")[0].split())
