"""Options that several commands share, and how their text is read."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from fuseline.compile_options import CHOICES, CompileOptions
from fuseline.errors import FuselineError

Function = TypeVar("Function", bound=Callable[..., Any])


json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of text.")


def parse_shape(text: str) -> tuple[str, str]:
    """`x=1x3x224x224`, `x:1x3x224x224`, `seq=128` or `seq=1..512` as `(name, extents)`; raises E0501 for other text.

    >>> parse_shape("x:1x3x224x224")
    ('x', '1x3x224x224')
    >>> parse_shape("images:0=1x3")
    ('images:0', '1x3')
    """
    found = re.fullmatch(r"(.+)[=:]((?:\d+(?:x\d+)*)|(?:\d+\.\.\d+))", text)
    if found is None:
        raise FuselineError(
            "E0501", f"--shape does not understand {text!r}", hint="write x=1x3x224x224, seq=128 or seq=1..512"
        )
    return found[1], found[2]


def parse_threads(text: str) -> list[int]:
    """`1,2` as `[1, 2]`; raises E0501 unless all are positive.

    >>> parse_threads("1,2")
    [1, 2]
    """
    words = text.split(",")
    if not all(word.strip().isdigit() and int(word) > 0 for word in words):
        raise FuselineError(
            "E0501", f"--threads does not understand {text!r}", hint="write a number, or a list such as 1,2"
        )
    return [int(word) for word in words]


def _shapes(ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    del ctx, parameter
    return dict(parse_shape(value) for value in values)


without_rule_option = click.option(
    "--without-rule",
    "without_rules",
    multiple=True,
    metavar="NAME",
    help="Leave a fusion rule out (docs/fusion.md has the names).",
)


_SHAPE = click.option(
    "--shape",
    "shapes",
    multiple=True,
    callback=_shapes,
    metavar="NAME=DIMS",
    help="x=1x3x224x224, seq=128 or seq=1..512.",
)
_TARGET = click.option(
    "--target",
    default="cpu",
    show_default=True,
    help="cpu, cpu:<isa>, cpu:<file.toml>, interpreter, null, null:<file.toml>, that of a package, or a path "
    "(./npu.py); `fuseline targets` lists them.",
)
_DEDUP = click.option(
    "--dedup",
    type=click.Choice(CHOICES["dedup"]),
    show_default=CompileOptions.dedup,
    help="Share code between dispatches.",
)
_FUSION = click.option(
    "--fusion",
    type=click.Choice(CHOICES["fusion"]),
    show_default=CompileOptions.fusion,
    help="How much runs in one dispatch.",
)
_NUMERICS = click.option(
    "--numerics", type=click.Choice(["strict", "default", "fast"]), default="default", show_default=True
)
_WEIGHTS = click.option(
    "--weights",
    type=click.Choice(CHOICES["weights"]),
    default=CompileOptions.weights,
    show_default=True,
    help="How an artifact holds them: as kernels read them, or as the model does (smaller, slower to load).",
)
_PLANS = (
    click.option(
        "--plan", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="A fusion plan to follow."
    ),
    click.option("--plan-strict", is_flag=True, help="Refuse a plan with entries that do not match the graph."),
)
_RULES = (
    click.option(
        "--rules",
        type=click.Path(path_type=Path, exists=True, dir_okay=False),
        multiple=True,
        help="A file with a fusion rule.",
    ),
    without_rule_option,
    click.option(
        "-p",
        "--passes",
        metavar="P{OPT=1},P2",
        help="Passes and phases in place of those up to `fusion`, in order; what follows is done as ever.",
    ),
)


def _tuned(ctx: click.Context, parameter: click.Parameter, value: bool) -> bool | Path:
    """True, or the file that `--tuned-from` names, in whichever order the two stand."""
    given = ctx.meta.get(_TUNED_FROM)
    if given is not None:
        ctx.set_parameter_source(str(parameter.name), ParameterSource.COMMANDLINE)
    return given or value


def _tuned_from(ctx: click.Context, parameter: click.Parameter, value: Path | None) -> None:
    del parameter
    ctx.meta[_TUNED_FROM] = value


_TUNED_FROM = "fuseline.tuned_from"
_TUNED = (
    click.option(
        "--tuned-from",
        type=click.Path(path_type=Path, exists=True, dir_okay=False),
        is_eager=True,
        expose_value=False,
        callback=_tuned_from,
        help="The same, with the records in a file that `fuseline cache export` wrote.",
    ),
    click.option(
        "--tuned",
        is_flag=True,
        callback=_tuned,
        help="Kernels as tuning records of machines like this one found them fastest (docs/tuning.md).",
    ),
)
_CACHE = click.option(
    "--cache/--no-cache",
    default=True,
    help="Take the finished program from the cache, or compile anew (docs/cache.md).",
)


def _fuel(ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, int] | None:
    del ctx, parameter
    found = [re.fullmatch(r"([a-z]+)=(\d+)", value) for value in values]
    if not all(found):
        raise FuselineError("E0501", f"--fuel does not understand {', '.join(values)}", hint="write fusion=12")
    return {one[1]: int(one[2]) for one in found if one is not None} or None


_FUEL = click.option(
    "--fuel",
    multiple=True,
    callback=_fuel,
    metavar="KIND=N",
    help="Make only the first N decisions of a kind: pass, rewrite, fusion or kernel (docs/checking.md).",
)


def compile_options(function: Function) -> Function:
    """The options of every command that compiles; the function receives them as keyword arguments of
    `fuseline.compile`."""
    choices = (_DEDUP, _FUSION, _NUMERICS, _WEIGHTS)
    return _with((_SHAPE, _TARGET, *choices, *_PLANS, *_RULES, *_TUNED, _FUEL, _CACHE), function)


def partition_options(function: Function) -> Function:
    """Those of them that say which dispatches there are, of commands that make no code."""
    return _with((_SHAPE, _TARGET, _FUSION, _NUMERICS, *_PLANS, *_RULES), function)


def _with(options: Sequence[Callable[[Function], Function]], function: Function) -> Function:
    for option in reversed(options):
        function = option(function)
    return function


threads_option = click.option(
    "--threads", type=click.IntRange(min=1), help="Threads of the program; default: the machine's cores."
)
_SCHEDULER = click.option(
    "--scheduler",
    metavar="ADDRESS|local",
    help="Work on the workers of a Dask scheduler (tcp://host:8786), or on processes of this machine (docs/tuning.md).",
)
_KIND = click.option(
    "--kind",
    metavar="TEXT",
    help="With --scheduler: the kind of machine, or a part of its name; else the most frequent.",
)


def scheduler_options(function: Function) -> Function:
    """`--scheduler` and `--kind`, as `scheduler` and `kind`."""
    return _with((_SCHEDULER, _KIND), function)


markdown_option = click.option("--markdown", "as_markdown", is_flag=True, help="Print a table in Markdown.")
model_argument = click.argument("model", type=click.Path(path_type=Path))


def given_options(options: Mapping[str, Any]) -> list[str]:
    """Those of `options` that the command line gives, rather than their defaults."""
    context = click.get_current_context(silent=True)
    if context is None:
        return []
    return [name for name in options if context.get_parameter_source(name) not in (None, ParameterSource.DEFAULT)]


def flag_of(name: str) -> str:
    """How the option behind a parameter is written.

    >>> flag_of("plan_strict")
    '--plan-strict'
    """
    context = click.get_current_context(silent=True)
    parameters = context.command.params if context is not None else []
    return next((item.opts[0] for item in parameters if item.name == name), f"--{name.replace('_', '-')}")
