"""What a finished program depends on, as one key: model, options, rules, plan, machine, packages and this package's
sources."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fuseline.cache.digests import file_digest
from fuseline.runtime.abi import FORMAT_VERSION
from fuseline.runtime.cpu import machine_features, machine_name
from fuseline.runtime.processors import allowed_processors

if TYPE_CHECKING:
    from fuseline.compile_options import CompileOptions

_FORMAT = 1  # of entries; raised when what is stored changes meaning
_KEPT = ("cpu", "iree")
"""Targets whose programs are kept."""

_PACKAGE_SUFFIXES = (".dist-info", ".egg-info", ".egg-link")


def program_key(source: Any, options: CompileOptions) -> str | None:
    """The content address of the program that `source` (a path, bytes or an onnx.ModelProto) becomes with `options`.
    None for a compile that makes no artifact, asks for more than the program, or whose files cannot be read: the
    compile says why.

    >>> from fuseline.compile_options import CompileOptions
    >>> program_key(b"", CompileOptions(target="interpreter")) is None
    True
    """
    family, _, variant = options.target.partition(":")
    if family not in _KEPT or options.emit or options.verify_each or options.poison or options.pass_options:
        return None
    if options.after_pass is not None or options.observer is not None or options.fuel is not None:
        return None
    try:
        fields = {
            "format": [_FORMAT, FORMAT_VERSION, sys.version_info[:2], _sources(), _packages(tuple(sys.path))],
            "machine": [machine_name(), sorted(machine_features())],
            "model": _model(source),
            "target": [options.target, *_target_files(variant)],
            "threads": [options.threads, len(allowed_processors()) if options.threads is None else None],
            "shapes": sorted((options.shapes or {}).items()),
            "choices": [options.dedup, options.fusion, options.numerics, options.plan_strict, options.weights],
            "kernels": _kernels(options),
            "plan": None if options.plan is None else file_digest(options.plan),
            "rules": [file_digest(path) for path in options.rules],
            "without_rules": sorted(options.without_rules),
            "passes": options.passes,
        }
    except OSError:
        return None
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()


def _kernels(options: CompileOptions) -> list[Any]:
    """What is asked of kernels, and what the user says of them: a compile warns of classes that it has not."""
    choices = options.choices
    asked = [[name, one.text, one.stale] for name, one in choices.asked]
    return [sorted(options.kernels), asked, sorted(choices.elsewhere), choices.unread]


def _target_files(variant: str) -> list[str]:
    """The digests of a target's description, and of the files with rules that it names; a broken one has none of these:
    the compile says what is wrong."""
    if not os.path.isfile(variant):
        return []
    try:
        fusion = tomllib.loads(Path(variant).read_text(encoding="utf-8")).get("fusion")
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError):
        return [file_digest(variant)]
    rules = fusion.get("rules") if isinstance(fusion, dict) else None
    named = [name for name in rules if isinstance(name, str)] if isinstance(rules, list) else []
    return [file_digest(path) for path in (variant, *(Path(variant).parent / name for name in named))]


def model_name(source: Any) -> str:
    """What records call a model: its path, or its type.

    >>> model_name(b""), model_name(Path("m.onnx"))
    ('bytes', 'm.onnx')
    """
    return str(source) if isinstance(source, str | Path) else type(source).__name__


def _model(source: Any) -> list[str]:
    """How the model is read, and the digest of what is read first."""
    if isinstance(source, str | Path):
        path = Path(source)
        return ["mlir" if path.suffix == ".mlir" else "onnx", file_digest(path)]
    data = source if isinstance(source, bytes) else source.SerializeToString(deterministic=True)
    return ["bytes" if isinstance(source, bytes) else "proto", hashlib.sha256(data).hexdigest()]


@cache
def _sources() -> str:
    """This package's sources as the file system sees them: a checkout changes without a new version."""
    root = Path(__file__).parents[1]
    found = sorted((path[len(str(root)) :], size, time) for path, size, time in _python_files(str(root)))
    return hashlib.sha256(repr(found).encode()).hexdigest()


def _python_files(folder: str) -> Iterator[tuple[str, int, int]]:
    with os.scandir(folder) as found:
        for item in found:
            if item.is_dir(follow_symlinks=False):
                yield from _python_files(item.path)
            elif item.name.endswith(".py"):
                status = item.stat()
                yield item.path, status.st_size, status.st_mtime_ns


@cache
def _packages(folders: tuple[str, ...]) -> str:
    """The installed packages and their versions, by the names of their folders of metadata: `importlib.metadata` takes
    longer to import than a program to find."""
    found = sorted({name for folder in dict.fromkeys(folders) for name in _metadata_folders(folder)})
    return hashlib.sha256("\n".join(found).encode()).hexdigest()


def _metadata_folders(folder: str) -> Iterable[str]:
    try:
        return [name for name in os.listdir(folder or ".") if name.endswith(_PACKAGE_SUFFIXES)]
    except OSError:
        return []
