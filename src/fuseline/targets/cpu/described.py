"""A CPU described in a TOML file: a machine (`isa/description_file.py`), and what it takes of a program
(`targets/target_file.py`). So programs for an accelerator can be formed, and run, here: a file may leave out what this
target can do, and never add to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from fuseline.errors import FuselineError
from fuseline.ir.target_description import TargetDescription
from fuseline.targets.cpu.isa.description_file import machine_of
from fuseline.targets.cpu.target import CpuTarget
from fuseline.targets.description_file import read_toml
from fuseline.targets.file_locations import location_of
from fuseline.targets.target_file import description_of

_AT_MOST = (
    "scratch_bytes_limit",
    "image_bytes_limit",
    "band_bytes_limit",
    "binding_limit",
    "arms_limit",
    "roots_limit",
    "code_limit",
)


def described_cpu(path: Path, threads: int | None = None, numerics: str = "default") -> CpuTarget:
    """The CPU in the file at `path`; `threads` and `numerics` count before what it says. Raises E0501 naming file, line
    and entry for what no CPU has, or has more of."""
    machine, entries = machine_of(read_toml(path), path)
    base = CpuTarget(machine, threads, numerics=numerics).description
    described, caps = description_of(entries, path, base)
    _refuse_more(entries, base, path)
    described = replace(
        described,
        threads=threads if threads is not None else described.threads,
        numerics=described.numerics if numerics == "default" else numerics,
    )
    target = CpuTarget(machine, described.threads, numerics=described.numerics)
    target.description, target.caps = described, caps
    return target


def _refuse_more(entries: Mapping[str, Any], base: TargetDescription, path: Path) -> None:
    """Raises E0501 for the first entry that is more than the code generator keeps to."""
    for name, value in entries.items():
        most = getattr(base, name) if name in _AT_MOST else None
        if (most is not None and value > most) or (name == "streamed_points" and value != base.streamed_points):
            message = f"{name} is {value}, kernels for a CPU have {getattr(base, name)}"
            raise FuselineError("E0501", message, node=location_of(path, "", name))
