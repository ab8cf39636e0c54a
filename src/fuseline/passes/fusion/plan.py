"""Fusion plans: a text file (TOML) that says which ops run together, by structural ids. `docs/plans.md` describes it
for those who edit one.

    version = 1
    graph = "9a8b7c6d5e4f"
    forbid = [["convolution.96eabbfb", "elementwise.35632b72"]]

    [[group]]
    ops = [
        "convolution.15fcfdff",  # Conv_4
        "elementwise.4e0f29a1",  # Relu_5
    ]

An op is written `kind.id`, as reports print it; only the id is matched.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from fuseline.errors import FuselineError
from fuseline.passes.fusion.tuned_choices import TunedChoices, read_tuned, tuned_text
from fuseline.report.records import CompileRecord

VERSION = 1
"""The version of the format."""

Ids: TypeAlias = "tuple[str, ...]"

_FIELDS: dict[str, type] = {
    "version": int,
    "model": str,
    "target": str,
    "threads": int,
    "fusion": str,
    "pipeline": str,
    "graph": str,
}
_HINT = "docs/plans.md describes the format; `fuseline compile MODEL --emit plan` writes one"


@dataclass(frozen=True, kw_only=True)
class FusionPlan:
    """What a plan asks for. `groups`: each is one dispatch; `force`: sets of ids that share one; `forbid`: sets of
    which no two share one.

    The other fields say for what the plan was made: the fingerprint of the graph, the model's file, target, threads,
    fusion level, pipeline. `tuned`: what a search chose beside.
    """

    groups: tuple[Ids, ...] = ()
    force: tuple[Ids, ...] = ()
    forbid: tuple[Ids, ...] = ()
    graph: str = ""
    model: str = ""
    target: str = ""
    threads: int = 0
    fusion: str = ""
    pipeline: str = ""
    tuned: TunedChoices | None = None

    @property
    def ids(self) -> Iterator[str]:
        """Every id that the plan mentions."""
        return (id for ids in (*self.groups, *self.force, *self.forbid) for id in ids)


def read_plan(path: Path) -> FusionPlan:
    """The plan in the file at `path`. Raises E0701 for a file that cannot be read or is no plan, naming the entry at
    fault."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else "it is not UTF-8 text"
        raise FuselineError("E0701", f"cannot read: {reason}", node=str(path), hint=_HINT) from problem
    return parse_plan(text, str(path))


def parse_plan(text: str, where: str = "<plan>") -> FusionPlan:
    """The plan that `text` spells; `where` names its source in errors (E0701)."""
    try:
        content = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as problem:
        raise _malformed(where, f"not TOML: {problem}") from problem
    if content.get("version") != VERSION:
        raise _malformed(where, f"version is {content.get('version')!r}, this fuseline reads {VERSION}")
    _check_names(content, {*_FIELDS, "force", "forbid", "group", "tuned"}, "the plan", where)
    plan = FusionPlan(
        groups=tuple(
            _group(entry, f"group {i}", where)
            for i, entry in enumerate(_list(content.get("group", []), "group", where), 1)
        ),
        force=_sets(content.get("force", []), "force", where),
        forbid=_sets(content.get("forbid", []), "forbid", where),
        tuned=_tuned(content["tuned"], where) if "tuned" in content else None,
        **{
            name: _field(content[name], name, kind, where)
            for name, kind in _FIELDS.items()
            if name in content and name != "version"
        },
    )
    _check_groups(plan, where)
    _check_conflicts(plan, where)
    return plan


def id_of(text: str) -> str:
    """The id in an op as reports print it.

    >>> id_of("convolution.96eabbfb-2"), id_of("96eabbfb-2")
    ('96eabbfb-2', '96eabbfb-2')
    """
    return text.rpartition(".")[2]


def _malformed(where: str, message: str) -> FuselineError:
    return FuselineError("E0701", message, node=where, hint=_HINT)


def _check_names(table: Mapping[str, Any], known: set[str], what: str, where: str) -> None:
    unknown = sorted(set(table) - known)
    if unknown:
        above = "; force and forbid stand above the first [[group]]" if unknown[0] in ("force", "forbid") else ""
        raise _malformed(where, f"{what} has no field {unknown[0]!r}{above}")


def _field(value: Any, name: str, kind: type, where: str) -> Any:
    if not isinstance(value, kind) or isinstance(value, bool):
        raise _malformed(where, f"{name} is {value!r}, not {'a number' if kind is int else 'a text'}")
    return value


def _tuned(value: Any, where: str) -> TunedChoices:
    try:
        return read_tuned(value)
    except ValueError as problem:
        raise _malformed(where, f"tuned: {problem}") from problem


def _list(value: Any, name: str, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise _malformed(
            where,
            f"{name} is not a list: write [[group]] above each group" if name == "group" else f"{name} is not a list",
        )
    return value


def _group(entry: Any, name: str, where: str) -> Ids:
    if not isinstance(entry, dict):
        raise _malformed(where, f"{name} is not a table: write [[group]] above it")
    _check_names(entry, {"ops"}, name, where)
    ids = _ids(entry.get("ops", []), name, where)
    if not ids:
        raise _malformed(where, f"{name} has no ops")
    return ids


def _sets(value: Any, name: str, where: str) -> tuple[Ids, ...]:
    found = tuple(_ids(entry, f"{name} {i}", where) for i, entry in enumerate(_list(value, name, where), 1))
    for i, ids in enumerate(found, 1):
        if len(ids) < 2:
            raise _malformed(where, f"{name} {i} names fewer than two ops")
    return found


def _ids(value: Any, name: str, where: str) -> Ids:
    if not isinstance(value, list) or not all(isinstance(item, str) and id_of(item) for item in value):
        raise _malformed(where, f"{name} is not a list of ops such as 'convolution.96eabbfb'")
    ids = tuple(id_of(item) for item in value)
    twice = _repeated(ids)
    if twice is not None:
        raise _malformed(where, f"{name} has {twice} twice")
    return ids


def _repeated(ids: Iterable[str]) -> str | None:
    seen: set[str] = set()
    for id in ids:
        if id in seen:
            return id
        seen.add(id)
    return None


def _check_groups(plan: FusionPlan, where: str) -> None:
    twice = _repeated(id for ids in plan.groups for id in ids)
    if twice is not None:
        raise _malformed(where, f"{twice} is in two groups")


def _check_conflicts(plan: FusionPlan, where: str) -> None:
    for i, apart in enumerate(plan.forbid, 1):
        for j, together in enumerate(plan.force, 1):
            both = sorted(set(apart) & set(together))
            if len(both) > 1:
                raise _malformed(
                    where, f"force {j} wants {both[0]} and {both[1]} together, forbid {i} wants them apart"
                )


# writing --------------------------------------------------------------------------------------------------------------

_HEAD = """\
# A fusion plan: each group is one dispatch. Ids are structural; the names behind # are for the reader and are not
# matched. Edit the groups, or write sets of ops into force (to share a dispatch) and forbid (no two share one), which
# win over the groups.
# docs/plans.md has the rest.
"""


def plan_text(record: CompileRecord) -> str:
    """The partition that a compile chose, as a plan."""
    return spelled(FusionPlan(groups=tuple(tuple(members) for members in record.groups)), record)


def spelled(plan: FusionPlan, record: CompileRecord, head: str = _HEAD) -> str:
    """What a plan asks for as text, for the compile that `record` is of: that says for what it is made, and the names
    behind ids. `head`: comments above it."""
    values = {
        "version": VERSION,
        "model": Path(record.model).name,
        "target": record.target,
        "threads": record.threads,
        "fusion": record.fusion,
        "pipeline": record.pipeline,
        "graph": record.fingerprint,
    }
    names = {id_of(name): name for name in record.fusion_nodes}
    lines = [f"{name} = {value if isinstance(value, int) else _quoted(value)}" for name, value in values.items()]
    lines += ["", f"force = {_sets_text(plan.force, names)}", f"forbid = {_sets_text(plan.forbid, names)}"]
    groups = [_group_text([names.get(id_of(id), id) for id in ids], record) for ids in plan.groups]
    tuned = [tuned_text(plan.tuned).rstrip()] if plan.tuned is not None else []
    return "\n".join([head + "\n".join(lines), *groups, *tuned]) + "\n"


def _sets_text(sets: Sequence[Ids], names: Mapping[str, str]) -> str:
    shown = [", ".join(_quoted(names.get(id_of(id), id)) for id in ids) for ids in sets]
    return "\n".join(["[", *(f"    [{ids}]," for ids in shown), "]"]) if shown else "[]"


def plan_id(record: CompileRecord) -> str:
    """What tells one partition from another: twelve letters of a digest of the graph and of its groups."""
    groups = sorted(tuple(sorted(map(id_of, members))) for members in record.groups)
    return hashlib.blake2b(repr((record.fingerprint, groups)).encode(), digest_size=6).hexdigest()


def _group_text(members: Sequence[str], record: CompileRecord) -> str:
    lines = [f"    {_quoted(name)},{_comment(name, record)}" for name in members]
    return "\n".join(["", "[[group]]", "ops = [", *lines, "]"])


def _comment(name: str, record: CompileRecord) -> str:
    known = record.fusion_nodes.get(name)
    return f"  # {_printable(', '.join(known.nodes))}" if known is not None and known.nodes else ""


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{_printable(escaped)}"'


def _printable(text: str) -> str:
    """TOML has no control characters, neither in strings nor in comments."""
    return "".join(character if character.isprintable() else "?" for character in text)
