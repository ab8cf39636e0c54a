"""Finding passes by file name: `-p sink-transposes` imports `passes/<group>/sink_transposes.py` and takes its `EXPORT`.

No list of passes exists; a file of that name with an `EXPORT` is one. Nothing is imported before it is asked for.
"""

from __future__ import annotations

import ast
import dataclasses
import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path

from xdsl.passes import ModulePass
from xdsl.utils.arg_spec import ArgSpec, parse_pipeline
from xdsl.utils.exceptions import ArgSpecParseError

from fuseline.errors import FuselineError

_EXPORT = re.compile(r"^EXPORT\b", re.MULTILINE)
_PACKAGE = "fuseline.passes"


@dataclass(frozen=True, slots=True)
class PassInfo:
    """A pass as listed: its name, the group (folder) it lies in, the first line of its docstring."""

    name: str
    group: str
    summary: str


def discover(root: Path) -> dict[str, Path]:
    """Pass name -> file, for every `<group>/<name>.py` under `root` that exports something.

    Raises FuselineError E0901 when two groups have a pass of one name.
    """
    found: dict[str, Path] = {}
    for path in sorted(root.glob("*/*.py")):
        if path.stem.startswith("_") or not _EXPORT.search(path.read_text(encoding="utf-8")):
            continue
        name = path.stem.replace("_", "-")
        if name in found:
            raise FuselineError(
                "E0901", f"two passes are called {name}: in {found[name].parent.name}/ and in {path.parent.name}/"
            )
        found[name] = path
    return found


@cache
def _passes() -> dict[str, Path]:
    return discover(Path(__file__).parent)


def list_passes() -> tuple[PassInfo, ...]:
    """All passes, by group and name, without importing any."""
    return tuple(
        sorted((_info(name, path) for name, path in _passes().items()), key=lambda info: (info.group, info.name))
    )


def _info(name: str, path: Path) -> PassInfo:
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    summary = " ".join(docstring.split("\n\n")[0].split()).removeprefix(f"{name}: ")
    return PassInfo(name, path.parent.name, summary)


def load_pass(name: str) -> type[ModulePass]:
    """The class of the pass called `name`; raises E0303 (with the nearest names) for an unknown one."""
    path = _passes().get(name)
    if path is None:
        near = difflib.get_close_matches(name, _passes(), n=3)
        hint = f"did you mean {' or '.join(near)}?" if near else "`fuseline opt --list-passes` lists them"
        raise FuselineError("E0303", f"there is no pass {name}", node=name, hint=hint)
    return checked(name, getattr(import_module(f"{_PACKAGE}.{path.parent.name}.{path.stem}"), "EXPORT", None))


def checked(name: str, export: object) -> type[ModulePass]:
    """`export` if it is a pass class of that name, a frozen dataclass; raises E0901 otherwise."""
    if not (isinstance(export, type) and issubclass(export, ModulePass)):
        raise FuselineError("E0901", f"the EXPORT of {name} is no ModulePass: {export!r}", node=name)
    if getattr(export, "name", None) != name:
        raise FuselineError(
            "E0901", f"the pass in {name.replace('-', '_')}.py is called {getattr(export, 'name', None)}", node=name
        )
    parameters = getattr(export, "__dataclass_params__", None)
    if "__dataclass_params__" not in vars(export) or not getattr(parameters, "frozen", False):
        raise FuselineError("E0901", f"the pass {name} is no frozen dataclass", node=name)
    return export


def parse_passes(pipeline: str, phases: Mapping[str, Sequence[str]] | None = None) -> tuple[ModulePass, ...]:
    """The passes that `pass{option=1 other=2},pass2` describes, in order; a name in `phases` stands for the passes it
    lists.

    Raises FuselineError E0303 for an unknown pass, E0304 for an option that the pass does not take or text that is no
    pipeline.
    """
    return tuple(make_pass(spec) for spec in parse_specs(pipeline, phases))


def parse_specs(pipeline: str, phases: Mapping[str, Sequence[str]] | None = None) -> list[ArgSpec]:
    """The same as specifications; raises E0304 for text that is no pipeline, and a phase with options."""
    try:
        specs = list(parse_pipeline(pipeline))
    except ArgSpecParseError as error:
        raise FuselineError(
            "E0304", _one_line(error), node=pipeline, hint="write pass{option=1 other=a},pass2"
        ) from error
    _require_once(pipeline)
    groups = phases or {}
    for spec in specs:
        if spec.name in groups and spec.parameters:
            names = ", ".join(groups[spec.name])
            raise FuselineError(
                "E0304", "it is a phase, which takes no options", node=spec.name, hint=f"write out its passes: {names}"
            )
    return [
        one
        for spec in specs
        for one in ([ArgSpec(name, {}) for name in groups[spec.name]] if spec.name in groups else [spec])
    ]


def _require_once(pipeline: str) -> None:
    """Raises E0304 for an option that a pass is given twice: the first would count for nothing."""
    for name, options in re.findall(r"([\w-]+)\{([^}]*)\}", re.sub(r'"[^"]*"', '""', pipeline)):
        given = [word.partition("=")[0].replace("_", "-") for word in options.split()]
        twice = next((word for word in given if given.count(word) > 1), None)
        if twice is not None:
            raise FuselineError("E0304", f"{twice} is given twice", node=name, hint="leave one of them out")


def make_pass(spec: ArgSpec | str) -> ModulePass:
    """The pass that one specification (or a bare name) describes; raises as `parse_passes`."""
    if isinstance(spec, str):
        spec = ArgSpec(spec, {})
    kind = load_pass(spec.name)
    _require_items(kind, spec)
    try:
        return kind.from_spec(spec)
    except ValueError as error:
        raise FuselineError("E0304", str(error), node=spec.name, hint=_options(kind)) from error


def _require_items(kind: type[ModulePass], spec: ArgSpec) -> None:
    """Raises E0304 for a list without items: left out it would mean something else."""
    lists = {field.name for field in dataclasses.fields(kind) if str(field.type).startswith("tuple")}
    for option, items in spec.parameters.items():
        if option.replace("-", "_") in lists and not items:
            hint = "give it items (a,b), or leave it out"
            raise FuselineError("E0304", f"{option} is an empty list", node=spec.name, hint=hint)


def _options(kind: type[ModulePass]) -> str:
    fields = [
        f"{field.name.replace('_', '-')}: {field.type}"
        for field in dataclasses.fields(kind)
        if field.metadata.get("option", True)
    ]
    return f"its options are {', '.join(fields)}" if fields else "it has no options"


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())
