"""Collects `tests/filecheck/**/*.mlir`: runs each RUN line in this process, and the programs before and after on the
interpreter.

    // RUN: fuseline opt %s -p canonicalize --split-input-file | filecheck %s

The RUN lines paste into a shell. A RUN line may start with `not` (the command must fail), redirect nothing, and pipe
into filecheck only. Every function whose signature the passes keep is also evaluated before and after on random inputs
and must agree; `// NO-RUN` anywhere in the file (with a reason) leaves that out.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest
from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import parse_argv_options
from filecheck.parser import Parser as CheckParser

from tests.equivalence import compare_programs

_RUN = re.compile(r"^\s*//\s*RUN:\s*(.*)$", re.MULTILINE)
NO_RUN = "// NO-RUN"


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Every `.mlir` file below this folder is a test module."""
    if file_path.suffix == ".mlir":
        return CheckFile.from_parent(parent, path=file_path)
    return None


def run_lines(text: str) -> list[str]:
    """The RUN lines, those that end in a backslash joined with the next."""
    return re.sub(r"\\\n", " ", "\n".join(match.group(1) for match in _RUN.finditer(text))).splitlines()


class CheckFile(pytest.File):
    """One file: a test per RUN line, and one that executes before and after."""

    def collect(self) -> Iterator[pytest.Item]:
        text = self.path.read_text(encoding="utf-8")
        lines = run_lines(text)
        if not lines:
            raise self.CollectError(f"{self.path} has no RUN line")
        for number, line in enumerate(lines):
            yield RunItem.from_parent(self, name=f"run{number}", line=line)
        if NO_RUN not in text:
            for number, line in enumerate(lines):
                if "-p" in shlex.split(line):
                    yield ExecuteItem.from_parent(self, name=f"execute{number}", line=line)


class CheckFailure(AssertionError):
    """A RUN line that did not do what the file says."""


class _LineItem(pytest.Item):
    def __init__(self, *, line: str, **options: object) -> None:
        super().__init__(**options)  # pyright: ignore[reportArgumentType]
        self.line = line

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: object = None) -> str:
        if isinstance(excinfo.value, CheckFailure):
            return f"{self.path}: {self.line}\n{excinfo.value}"
        return str(super().repr_failure(excinfo))

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, f"{self.path.name}::{self.name}"


class RunItem(_LineItem):
    """`[not] fuseline ... | filecheck ...` in this process."""

    def runtest(self) -> None:
        command, _, check = self.line.partition("|")
        words = [word.replace("%s", str(self.path)) for word in shlex.split(command)]
        output = run_command(words)
        if check.strip():
            check_output(output, [word.replace("%s", str(self.path)) for word in shlex.split(check)])


class ExecuteItem(_LineItem):
    """The programs of the file before and after the passes of one RUN line, on equal random inputs."""

    def runtest(self) -> None:
        words = shlex.split(self.line.partition("|")[0])
        if words[0] == "not":
            pytest.skip("the passes refuse this file")
        pipeline = words[words.index("-p") + 1]
        text = self.path.read_text(encoding="utf-8")
        for problem in compare_programs(text, pipeline, split="--split-input-file" in words, name=self.path.name):
            raise CheckFailure(problem)


def run_command(words: list[str]) -> str:
    """What `fuseline ...` prints, output and errors; raises CheckFailure when it fails (or, after `not`, when it does
    not)."""
    from fuseline.cli.main import main

    expected_failure = words[0] == "not"
    words = words[1:] if expected_failure else words
    if words[0] != "fuseline":
        raise CheckFailure(f"RUN lines start with fuseline, not {words[0]}")
    stream = io.StringIO()
    with contextlib.redirect_stdout(stream), contextlib.redirect_stderr(stream):
        code = main(words[1:])
    if (code != 0) != expected_failure:
        raise CheckFailure(f"exit code {code}\n{stream.getvalue()}")
    return stream.getvalue()


def check_output(output: str, words: list[str]) -> None:
    """Match `output` against the CHECK lines that a filecheck command names; raises CheckFailure with filecheck's
    explanation."""
    options = parse_argv_options(list(words))
    stream = io.StringIO()
    with contextlib.redirect_stderr(stream), patch("sys.stderr", stream):
        matcher = Matcher(options, FInput("-", output), CheckParser.from_opts(options))
        code = matcher.run()
    if code:
        raise CheckFailure(f"{stream.getvalue()}\n--- output ---\n{output}")
