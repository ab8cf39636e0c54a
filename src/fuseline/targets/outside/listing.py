"""All targets there are, a line each: those of the tree, those of installed packages, and those at given paths."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import EntryPoint
from types import ModuleType

from fuseline.errors import FuselineError
from fuseline.runtime.artifact import ARTIFACT_SUFFIX
from fuseline.targets.outside.loading import Maker, installed, maker_named, maker_of_entry, package_of, summary_of
from fuseline.targets.outside.named import outside_maker
from fuseline.targets.outside.program import NO_SUFFIX
from fuseline.targets.target import Target

BUILT_IN = "built-in"


@dataclass(frozen=True, slots=True)
class TargetInfo:
    """A target as listed. `origin`: `built-in`, a package with its version and module, or a path. `runs`: its programs
    run here; `writes`: how files of them end, empty where they are none. `error`: why it cannot be used (a coded error
    as JSON), None where it can."""

    name: str
    origin: str
    summary: str = ""
    runs: bool = False
    writes: str = ""
    error: dict[str, object] | None = None


def list_targets(builtin: Sequence[str], others: Sequence[str] = ()) -> list[TargetInfo]:
    """The targets of the tree, of packages by their names, and `others` (paths or names, with a variant or without);
    one that fails has its error."""
    entries = installed()
    names = [entry.name for entry in entries]
    found = [_info(TargetInfo(name, BUILT_IN), partial(_builtin, name)) for name in builtin]
    for entry in entries:
        make = partial(_installed, entry, names.count(entry.name) > 1, tuple(builtin))
        found.append(_info(TargetInfo(entry.name, package_of(entry)), make))
    return [*found, *(_info(TargetInfo(name, name), partial(_named, name, tuple(builtin))) for name in others)]


def _info(blank: TargetInfo, make: Callable[[], tuple[Target, str]]) -> TargetInfo:
    try:
        target, summary = make()
    except FuselineError as problem:
        return replace(blank, error=problem.to_json())
    own = target.suffix or ("" if target.runs_programs else NO_SUFFIX)
    writes = ARTIFACT_SUFFIX if target.makes_artifacts else own if blank.origin != BUILT_IN else ""
    return replace(blank, summary=summary, runs=target.runs_programs, writes=writes)


def _builtin(name: str) -> tuple[Target, str]:
    module: ModuleType = importlib.import_module(f"fuseline.targets.{name}")
    return module.create(), summary_of(module)


def _installed(entry: EntryPoint, twice: bool, builtin: tuple[str, ...]) -> tuple[Target, str]:
    maker = maker_named(entry.name) if twice else maker_of_entry(entry, builtin)
    assert maker is not None, "the entry is among those that are looked through"
    return _made(maker, "")


def _named(name: str, builtin: tuple[str, ...]) -> tuple[Target, str]:
    return _made(*outside_maker(name, builtin))


def _made(maker: Maker, variant: str) -> tuple[Target, str]:
    return maker.make(variant or None, None, "default"), maker.summary
