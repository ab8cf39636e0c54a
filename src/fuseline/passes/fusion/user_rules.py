"""Rules from outside the tree: `--rules FILE`, and installed packages with an entry point in the group
`fuseline.rules`.

A file (or the module that an entry point names) has an `EXPORT`: a rule class or a list of them. What is wrong with one
is E0704, by its name.
"""

from __future__ import annotations

import importlib.util
import re
import sys
import traceback
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar, cast

from xdsl.passes import ModulePass

from fuseline.errors import FuselineError
from fuseline.installed_entries import entry_points
from fuseline.ir.target_description import TargetRules
from fuseline.passes.fusion.checked_rule import checked
from fuseline.passes.fusion.rule import FusionRule, Shape, builtin_rules, order_rules
from fuseline.passes.fusion.rule_choice import ChosenRules, chosen_rules, require_known

BUILT_IN = "built-in"

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


@dataclass(frozen=True, slots=True)
class RuleInfo:
    """A rule as listed: `origin` is `built-in`, the file, or the entry point's module; `summary` the first paragraph of
    its documentation."""

    name: str
    shape: str
    after: tuple[str, ...]
    summary: str
    origin: str


@dataclass(frozen=True, slots=True)
class _Found:
    rule: FusionRule
    summary: str
    origin: str


def load_rules(path: Path) -> list[FusionRule]:
    """The rules of a user's file, their answers checked. Raises E0704 for a file that has none."""
    return [checked(found.rule, found.origin) for found in _file_rules(path)]


def installed_rules() -> list[FusionRule]:
    """The rules of installed packages, their answers checked. Raises E0704 as `load_rules` does."""
    return [checked(found.rule, found.origin) for found in _package_rules()]


def user_rules(paths: Iterable[Path]) -> tuple[FusionRule, ...]:
    """The rules of installed packages and of files."""
    return (*installed_rules(), *(rule for path in paths for rule in load_rules(path)))


PassT = TypeVar("PassT", bound=ModulePass)


def with_user_rules(step: PassT, paths: Sequence[Path], without: Sequence[str] = ()) -> PassT:
    """`step` with the rules of `paths` and without those that `without` names, where it is a pass that asks rules."""
    options = {field.name: getattr(step, field.name) for field in fields(step)}
    if "more_rules" not in options or not (paths or without):
        return step
    more = user_rules(paths) if paths else options["more_rules"]
    return replace(step, more_rules=more, without=(*options["without"], *without))  # pyright: ignore[reportCallIssue]


def require_rules(names: Sequence[str], paths: Sequence[Path]) -> None:
    """Raises E0501 for the first of the names of `without_rules` that no rule has, those of `paths` included."""
    if names:
        require_known("without_rules", names, user_rules(paths), "E0501")


def rules_asked(
    target: TargetRules, more: Sequence[FusionRule], only: Sequence[str], without: Sequence[str], asker: str
) -> ChosenRules:
    """The rules of the tree, `more` and those of the target, as the options `only` and `without` of the pass `asker`
    and the target's description choose among them.

    Raises E0304 for a name in the options that no rule has, E0501 for one in the description, at its place, and for
    options that choose nothing that the target has.
    """
    besides = [rule.name for rule in more]
    more = (*more, *(rule for path in target.files for rule in load_rules(Path(path))))
    require_known("rules", only, more, "E0304", asker)
    require_known("without", without, more, "E0304", asker)
    both = [name for name in only if name in without]
    if both:
        raise FuselineError("E0304", f"{both[0]} is in rules and in without", node=asker, hint="leave it out of one")
    for name in (*target.only, *target.without):
        require_known("the target's rules", [name], more, "E0501", target.locations.get(name, ""))
    return chosen_rules(more, _left_by(target, only, besides), (*without, *target.without))


def _left_by(target: TargetRules, only: Sequence[str], besides: Sequence[str]) -> Sequence[str]:
    """The names out of `only` (none: all) that the target has; it has those `besides`, which its description does not
    know."""
    if not target.only:
        return only
    known = [*target.only, *besides]
    kept = [name for name in only or known if name in known]
    if only and not kept:
        hint = f"it has {', '.join(target.only)}"
        raise FuselineError("E0501", f"the target has none of the rules {', '.join(only)}", node=only[0], hint=hint)
    return kept


def list_rules(paths: Sequence[Path] = ()) -> list[RuleInfo]:
    """All rules in the order in which they are asked, those of `paths` included. Raises E0704."""
    builtin = [_Found(rule, _summary(sys.modules[type(rule).__module__].__doc__), BUILT_IN) for rule in builtin_rules()]
    found = [*builtin, *_package_rules(), *(entry for path in paths for entry in _file_rules(path))]
    order = order_rules(entry.rule for entry in found)
    known = {entry.rule.name: entry for entry in found}
    return [RuleInfo(r.name, r.shape.value, tuple(r.after), known[r.name].summary, known[r.name].origin) for r in order]


def _file_rules(path: Path) -> list[_Found]:
    name = f"fuseline_user_rules_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise FuselineError(
            "E0704", f"no rule file at {path}", node=str(path), hint="pass a Python file that has an EXPORT"
        )
    module = sys.modules[name] = importlib.util.module_from_spec(spec)  # dataclasses look their module up there
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as problem:
        place = f"{path}{_line_in(problem, path)}"
        raise FuselineError("E0704", f"the rule file does not load: {problem!r}", node=place) from problem
    return _rules_of(module, str(path))


def _line_in(problem: BaseException, path: Path) -> str:
    """`:line` of the file where it fails to load; nothing where it is not known."""
    if isinstance(problem, SyntaxError):
        return f":{problem.lineno}" if problem.filename == str(path) else ""
    lines = [frame.lineno for frame in traceback.extract_tb(problem.__traceback__) if frame.filename == str(path)]
    return f":{lines[-1]}" if lines else ""


def _package_rules() -> list[_Found]:
    found: list[_Found] = []
    for entry in entry_points(group="fuseline.rules"):
        try:
            module = entry.load()
        except (Exception, SystemExit) as problem:
            raise FuselineError(
                "E0704", f"the rules of an installed package do not load: {problem!r}", node=entry.value
            ) from problem
        found += _rules_of(module, entry.value)
    return found


def _rules_of(module: Any, origin: str) -> list[_Found]:
    exports: Any = getattr(module, "EXPORT", None)
    classes: list[Any] = list(exports) if isinstance(exports, list | tuple) else [exports]
    if not classes or not all(isinstance(item, type) and issubclass(item, FusionRule) for item in classes):
        raise FuselineError("E0704", "it has no EXPORT that is a FusionRule class, or a list of them", node=origin)
    return [
        _Found(_made(item, origin), _summary(item.__dict__.get("__doc__") or getattr(module, "__doc__", "")), origin)
        for item in classes
    ]


def _made(kind: type[FusionRule], origin: str) -> FusionRule:
    """An instance of a rule class whose fields are what they should be."""
    name: object = getattr(kind, "name", None)
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise FuselineError(
            "E0704", f"class {kind.__name__} has the name {name!r}; write it in kebab-case", node=origin
        )
    after, shape = cast("object", kind.after), cast("object", kind.shape)
    if not isinstance(after, tuple | list) or not all(isinstance(other, str) for other in after):
        raise FuselineError("E0704", f"rule {name} has after = {after!r}, which is no tuple of names", node=origin)
    if not isinstance(shape, Shape):
        raise FuselineError(
            "E0704", f"rule {name} has shape = {shape!r}; use Shape.SHARED or Shape.INLINE_PRODUCER", node=origin
        )
    try:
        return kind()
    except (Exception, SystemExit) as problem:
        raise FuselineError("E0704", f"rule {name} cannot be made: {problem}", node=origin) from problem


def _summary(documentation: object) -> str:
    """The first paragraph, as one line."""
    return " ".join(str(documentation or "").strip().partition("\n\n")[0].split())
