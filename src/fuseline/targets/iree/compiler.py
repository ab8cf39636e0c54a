"""IREE's compiler, run as a program of its own: what crashes it does not end ours."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from fuseline.errors import MissingPackageError

NAME = "iree-base-compiler"
_ERROR = re.compile(r"^(?:[^\n:]*\.mlir):(\d+):\d+: error: ([^\n]*)", re.MULTILINE)
_SHORT = 200
"""Characters of an error that are kept: some print all features of the machine."""


class Failure(NamedTuple):
    """What the compiler says is wrong, and the line of the text; 0 where it says none (a crash)."""

    line: int
    message: str


class Compiled(NamedTuple):
    """`code`: the `.vmfb`, empty where `failures` say why there is none. `figures`: what IREE counts of the program."""

    code: bytes
    failures: Sequence[Failure] = ()
    figures: Mapping[str, int] = {}


@cache
def tool() -> Path:
    """The compiler of the installed package. Raises FuselineError (E0503) where there is none."""
    try:
        found = importlib.util.find_spec("iree.compiler")
    except ModuleNotFoundError:
        found = None
    for folder in found.submodule_search_locations or () if found is not None else ():
        path = Path(folder) / "_mlir_libs" / "iree-compile"
        if path.exists():
            return path
    hint = "pip install 'fuseline[iree]'"
    raise MissingPackageError("E0503", f"{NAME} is not installed, which the target iree compiles with", hint=hint)


def compile_text(text: str, arguments: Sequence[str]) -> Compiled:
    """What IREE's compiler makes of a module. Raises FuselineError (E0503) where it is not installed."""
    program = str(tool())
    with tempfile.TemporaryDirectory(prefix="fuseline-iree-") as folder:
        source, code, counts = (Path(folder) / name for name in ("m.mlir", "m.vmfb", "counts.txt"))
        source.write_text(text, encoding="utf-8")
        given = ["--iree-scheduling-dump-statistics-format=pretty", f"--iree-scheduling-dump-statistics-file={counts}"]
        run = subprocess.run(
            [program, str(source), "-o", str(code), *arguments, *given],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if run.returncode == 0:
            return Compiled(code.read_bytes(), (), figures_in(counts.read_text()))
    return Compiled(b"", failures_in(run.stderr, run.returncode))


def failures_in(output: str, status: int) -> list[Failure]:
    """The errors that the compiler printed; one without a line where it ended in another way."""
    found = [Failure(int(line), message[:_SHORT]) for line, message in _ERROR.findall(output)]
    if found and status > 0:
        return found
    first = next((line.strip() for line in output.splitlines() if "error" in line.lower()), "")
    return [*found, Failure(0, first[:_SHORT] or f"iree-compile ended with {status}")]


_COUNTS = {
    "dispatches": r"Dispatches: (\d+)",
    "executables": r"Executables: (\d+)",
    "fills": r"DMA Fills: (\d+)",
    "copies": r"DMA Copies: (\d+)",
    "transient_bytes": r"using cumulative (\d+) B",
}


def figures_in(text: str) -> dict[str, int]:
    """What the statistics of IREE's scheduler say: dispatches and copies as they stand in the program (once in a loop),
    transient memory in bytes, added up over all submissions."""
    found = {name: re.search(pattern, text) for name, pattern in _COUNTS.items()}
    return {name: int(match.group(1)) for name, match in found.items() if match is not None}
