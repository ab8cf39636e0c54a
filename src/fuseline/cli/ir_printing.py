"""`--print-ir-after[=PASS]` and `--print-ir-to DIR`: what passes make of the IR, as commands that run passes print
it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from fuseline.errors import FuselineError

if TYPE_CHECKING:
    from fuseline.ir.printed_after import PrintedAfter

Function = TypeVar("Function", bound=Callable[..., Any])
CHANGED = "*"
"""What the option without a value stands for: every pass that changed something."""


def print_ir_options(function: Function) -> Function:
    """The two options; the function receives them as `print_ir_after` and `print_ir_to`."""
    for option in (
        click.option(
            "--print-ir-to",
            type=click.Path(path_type=Path),
            metavar="DIR",
            help="Write what --print-ir-after prints to numbered files in this folder.",
        ),
        click.option(
            "--print-ir-after",
            is_flag=False,
            flag_value=CHANGED,
            default=None,
            metavar="[=PASS,..]",
            help="Print the IR after these passes (or all of a phase) to standard error; without a value, after every "
            "pass that changed it.",
        ),
    ):
        function = option(function)
    return function


def ir_printer(
    after: str | None, folder: Path | None, known: Collection[str], phases: Mapping[str, Sequence[str]] | None = None
) -> PrintedAfter | None:
    """The observer of passes that the options ask for; None where they ask for nothing.

    `known`: the passes that run, and their phases; `phases`: their passes, where those run under their names alone.

    Raises FuselineError: E0303 for a pass that does not run, E0501 for a folder without a print, E0502
    for one that is no folder.
    """
    from fuseline.ir.printed_after import PrintedAfter

    if after is None:
        if folder is not None:
            raise FuselineError("E0501", "--print-ir-to without --print-ir-after", hint="add --print-ir-after")
        return None
    named = None if after == CHANGED else _named(after, known)
    if named is not None and phases is not None:
        named |= {step for word in named for step in phases.get(word, ())}
    return PrintedAfter(_to_stderr if folder is None else _Files(folder), named)


def _named(after: str, known: Collection[str]) -> frozenset[str]:
    from difflib import get_close_matches

    words = frozenset(word.strip() for word in after.split(","))
    for word in sorted(words - {*known}):
        near = get_close_matches(word, known, n=3)
        hint = f"did you mean {' or '.join(near)}?" if near else "write --print-ir-after=PASS,PASS behind the model"
        raise FuselineError("E0303", f"no pass {word} runs here", node=word, hint=hint)
    return words


def _heading(place: str) -> str:
    return f"// -----// IR after {place} //----- //\n"


def _to_stderr(place: str, text: str) -> None:
    sys.stderr.write(f"{_heading(place)}{text}\n")


class _Files:
    """Writes `003_layout_fold-unit-dims.mlir`, one file per print, each whole or not at all."""

    def __init__(self, folder: Path) -> None:
        from fuseline.cli.output import require_folder

        require_folder(folder)
        self._folder, self._count = folder, 0

    def __call__(self, place: str, text: str) -> None:
        from fuseline.runtime.files import write_bytes

        name = f"{self._count:03d}_{place.replace('/', '_')}.mlir"
        write_bytes(self._folder / name, (_heading(place) + text).encode())
        self._count += 1
