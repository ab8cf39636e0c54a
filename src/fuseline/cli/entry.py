"""The console script: the command line, or, where only the runtime is there, what runs artifacts; everything else says
what to install. Imports the standard library."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from typing import NoReturn


def run() -> NoReturn:
    """Run the command line that the process was given, and exit.

    What is alive is left to the end of the process: the interpreter's last collection would walk all modules, a fifth
    of a small compile.
    """
    code = _code(sys.argv[1:])
    gc.freeze()
    sys.exit(code)


def _code(arguments: Sequence[str]) -> int:
    try:
        from fuseline.cli.main import main
    except ModuleNotFoundError as problem:
        return _without_compiler(problem, arguments)
    return main(arguments)


def _without_compiler(problem: ModuleNotFoundError, arguments: Sequence[str]) -> int:
    """`fuseline run X.fuse` by the runtime's own command; the exit code."""
    words = [word for word in arguments if word != "--debug"]
    if words[:1] == ["run"] and any(word.endswith(".fuse") for word in words):
        from fuseline.interop import onnx_host
        from fuseline.runtime.command import main

        onnx_host.install()  # artifacts may hold operators that run there
        return main(words[1:], "fuseline run")
    return _refused(problem, arguments)


def _refused(problem: ModuleNotFoundError, arguments: Sequence[str]) -> int:
    """Say what is missing as every command does; the exit code."""
    from fuseline.border import coded
    from fuseline.runtime.command import show_error

    error = coded(problem, "start")
    command = next((word for word in arguments if not word.startswith("-")), "fuseline")
    works = "fuseline run X.fuse and fuseline.load(path).run(feeds) work without it" if error.code == "E0503" else ""
    show_error(error, as_json="--json" in arguments, command=command, more=works)
    return 1
