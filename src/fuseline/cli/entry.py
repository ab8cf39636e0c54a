"""The console script: the command line, or a plain block that says what to install where only the runtime is there.
Imports the standard library."""

from __future__ import annotations

import json
import sys
from typing import NoReturn

from fuseline.border import coded
from fuseline.errors import ERROR_TITLES, FuselineError


def run() -> NoReturn:
    """Run the command line that the process was given, and exit."""
    try:
        from fuseline.cli.main import main
    except ModuleNotFoundError as problem:
        sys.exit(_refused(problem, sys.argv[1:]))
    sys.exit(main(sys.argv[1:]))


def _refused(problem: ModuleNotFoundError, arguments: list[str]) -> int:
    """Say what is missing as every command does; answers the exit code."""
    error = coded(problem, "start")
    command = next((word for word in arguments if not word.startswith("-")), "fuseline")
    if "--json" in arguments:
        sys.stdout.write(json.dumps({"version": 1, "command": command, "error": error.to_json()}, indent=2) + "\n")
    else:
        sys.stderr.write(_block(error))
    return 1


def _block(error: FuselineError) -> str:
    runtime = "fuseline.load(path).run(feeds) works without it"
    lines = f"  why   {error.message}", f"  try   {error.hint}", f"  else  {runtime}" if error.code == "E0503" else ""
    return "\n".join([f"error {error.code}: {ERROR_TITLES[error.code]}", *(line for line in lines if line)]) + "\n"
