"""Where a command's result goes: a file, whole or not at all, or standard output for `-`."""

from __future__ import annotations

import sys
from pathlib import Path

from fuseline.cli.console import note, standard_output
from fuseline.errors import FuselineError
from fuseline.report.quantities import plural, quantity
from fuseline.runtime.files import write_bytes

STDOUT = Path("-")


def is_stdout(output: Path | None) -> bool:
    """Whether an `-o` option names standard output."""
    return output is not None and output == STDOUT


def deliver(output: Path, content: bytes | str) -> None:
    """Write the result to the file, or to standard output for `-`. Raises FuselineError (E0502) for a place that cannot
    be written."""
    data = content.encode() if isinstance(content, str) else content
    if not is_stdout(output):
        write_bytes(output, data)
        return
    with standard_output():
        sys.stdout.flush()
        binary = getattr(sys.stdout, "buffer", None)
        if binary is None:  # what stands in for it takes text only
            sys.stdout.write(data.decode())
            return
        binary.write(data)
        binary.flush()


def note_names_only(count: int, size: int) -> None:
    """Say on standard error that a text has only the names of so many weights, of `size` bytes."""
    note(f"{plural(count, 'weight')} ({quantity(size)}B) are names only in this text: -o FILE writes them beside it")


def require_folder(folder: Path) -> None:
    """Make the folder, unless it is there. Raises FuselineError (E0502) where it cannot be, a file of that name
    included."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise FuselineError("E0502", f"cannot write: {why}", node=str(folder), hint="give a folder") from error


def refuse_two_documents(output: Path | None, as_json: bool) -> None:
    """Raises FuselineError (E0501) where both the result and a JSON document would go to standard output."""
    if as_json and is_stdout(output):
        raise FuselineError(
            "E0501", "--json and -o - both write to standard output", hint="give a file, or leave one of them out"
        )
