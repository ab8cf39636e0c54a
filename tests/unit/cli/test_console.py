"""Where text goes, and how it looks there."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from rich.table import Table

from fuseline.cli import console
from fuseline.errors import ERROR_TITLES, FuselineError

CAPTURED = pytest.CaptureFixture[str]


def test_results_go_to_standard_output(capsys: CAPTURED) -> None:
    console.say(["one [bold]two[/]", ":smile: 3"])
    console.say("x" * 500)
    table = Table("name", box=None)
    table.add_row("w" * 300)
    console.say(table)
    shown = capsys.readouterr()
    lines = shown.out.splitlines()
    assert lines[:3] == ["one [bold]two[/]", ":smile: 3", "x" * 500]  # as they are, and in one piece
    assert lines[4].strip() == "w" * 300
    assert not shown.err


def test_what_stands_beside_goes_to_standard_error(capsys: CAPTURED) -> None:
    console.warn(["first", "second"])
    console.note("[1/2] " + "y" * 300)
    shown = capsys.readouterr()
    assert shown.err.splitlines() == ["warning: first", "warning: second", "[1/2] " + "y" * 300]
    assert not shown.out


def test_documents_hold_numbers_of_numpy(capsys: CAPTURED) -> None:
    content = {"a": np.float32(0.5), "b": np.arange(3), "c": Path("x"), "d": np.int64(7)}
    console.emit("mine", content)
    expected = {"version": 1, "command": "mine", "a": 0.5, "b": [0, 1, 2], "c": "x", "d": 7}
    assert json.loads(capsys.readouterr().out) == expected


def test_an_error_as_a_block(capsys: CAPTURED) -> None:
    error = FuselineError("E0106", "first\nsecond", node="n", phase="read", hint="try it")
    console.show_error(error, as_json=False, command="run")
    assert capsys.readouterr().err.splitlines() == [
        f"error E0106: {ERROR_TITLES['E0106']}",
        "  at   n",
        "  in   read",
        "  why  first",
        "       second",
        "  try  try it",
        "  more fuseline errors E0106",
    ]
    console.show_error(FuselineError("E0106", "only"), as_json=False, command="run")
    assert [line[:6].strip() for line in capsys.readouterr().err.splitlines()[1:]] == ["why", "more"]


def test_an_error_as_a_document(capsys: CAPTURED) -> None:
    error = FuselineError("E0106", "what", node="n")
    console.show_error(error, as_json=True, command="run")
    shown = capsys.readouterr()
    assert json.loads(shown.out) == {"version": 1, "command": "run", "error": error.to_json()}
    assert not shown.err


def test_progress_is_for_terminals(capsys: CAPTURED, monkeypatch: pytest.MonkeyPatch) -> None:
    with console.progress("working") as report:
        report("phase", 1, 2)
    assert capsys.readouterr() == ("", "")
    stream = io.StringIO()
    terminal = Console(file=stream, force_terminal=True, color_system=None)
    monkeypatch.setattr(console, "err", lambda: terminal)
    shown: list[str] = []
    with console.progress("working") as report:
        status = report.__closure__[0].cell_contents  # pyright: ignore - what is on the screen is drawn in a thread
        for arguments in (("phase", 1, 2), ("count", 0, 0)):
            report(*arguments)
            shown.append(str(status.status))
    assert shown == ["working: phase [1/2]", "working: count"]
