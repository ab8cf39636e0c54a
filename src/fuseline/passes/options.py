"""Options of passes as users give them: in the text of a pipeline, or in Python by the name of the pass."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, cast

from xdsl.utils.arg_spec import ArgSpec

from fuseline.errors import FuselineError
from fuseline.passes.registry import load_pass, make_pass, parse_specs


@dataclass(frozen=True)
class Step:
    """A pass of a pipeline, with the options that it has there."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])


def parse_steps(pipeline: str, phases: Mapping[str, Sequence[str]]) -> list[Step]:
    """The passes that a text describes, as `registry.parse_passes` reads it; raises E0303 and E0304 as that does."""
    return [Step(spec.name, _typed(spec)) for spec in parse_specs(pipeline, phases)]


def pass_options(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The options `given` to the pass `name` in Python: texts, numbers and flags, or lists of them. Raises E0304 for
    one that the pass does not take."""
    return _typed(ArgSpec(name, {option: _values(name, option, value) for option, value in given.items()}))


def require_run(names: Collection[str], run: Collection[str]) -> None:
    """Raises E0303 for the first of `names` that is no pass, E0304 for one that is not among those that `run`."""
    for name in names:
        load_pass(name)
        if name not in run:
            near = get_close_matches(name, run, 3)
            hint = f"near it are {', '.join(near)}" if near else "`fuseline opt --list-passes` lists all passes"
            raise FuselineError("E0304", "it has options, and this compile does not run it", node=name, hint=hint)


def _typed(spec: ArgSpec) -> dict[str, Any]:
    made = make_pass(spec) if spec.parameters else load_pass(spec.name)
    return {option: getattr(made, option) for option in spec.normalize_parameter_names().parameters}


def _values(name: str, option: str, value: object) -> tuple[Any, ...]:
    items = tuple(cast("Sequence[object]", value)) if isinstance(value, list | tuple) else (value,)
    if not all(isinstance(item, str | int | float) for item in items):
        raise FuselineError("E0304", f"{option} cannot be {value!r}", node=name, hint="give a text, a number or a list")
    return items
