"""A CPU described in a TOML file, as `fuseline machine --write` makes it: an ISA, cache sizes, and what work costs.

isa = "avx2"
l2_bytes = 1048576

[costs]
flops_per_ns = 61.5
launch_ns = 150.0
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from fuseline.errors import FuselineError
from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.isa.detection import ISA_NAMES, machine
from fuseline.targets.description_file import costs_of, is_positive, read_toml

SUFFIX = ".toml"
_SIZES = ("l1_bytes", "l2_bytes")


def read_machine(path: Path) -> Machine:
    """The machine in the file at `path`; without `isa`, this CPU with other figures. Raises E0501 naming the file and
    the entry at fault."""
    entries = read_toml(path)
    isa = entries.pop("isa", "")
    if not isinstance(isa, str) or (isa and isa not in ISA_NAMES):
        raise FuselineError(
            "E0501", f"isa is none that fuseline emits: {isa!r}", node=str(path), hint=f"one of: {', '.join(ISA_NAMES)}"
        )
    base = machine(isa)
    given: dict[str, Any] = {}
    for name, value in entries.items():
        if name == "costs":
            given[name] = costs_of(value, path, base.costs)
        elif name not in _SIZES:
            hint = "it says isa, l1_bytes, l2_bytes and [costs]"
            raise FuselineError(
                "E0501", f"{name} is nothing that a description of a CPU says", node=str(path), hint=hint
            )
        elif not is_positive(value):
            raise FuselineError("E0501", f"{name} is no positive integer: {value!r}", node=str(path))
        else:
            given[name] = value
    return replace(base, **given)
