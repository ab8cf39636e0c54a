"""The machine of a CPU described in a TOML file, as `fuseline machine --write` makes it: an ISA, cache sizes, and what
work costs.

isa = "avx2"
l2_bytes = 1048576

[costs]
flops_per_ns = 61.5
launch_ns = 150.0

[work_costs]                      # as `fuseline tune --fit` writes it
product = 0.0042
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from fuseline.errors import FuselineError
from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.isa.detection import ISA_NAMES, machine
from fuseline.targets.description_file import costs_of, is_positive
from fuseline.targets.file_locations import location_of

SUFFIX = ".toml"
_SIZES = ("l1_bytes", "l2_bytes")
_OF_A_MACHINE = ("isa", "costs", "work_costs", *_SIZES)


def machine_of(entries: Mapping[str, object], path: Path) -> tuple[Machine, dict[str, object]]:
    """The machine that the `entries` of a file give (without `isa`, this CPU with other figures), and the entries that
    are of no machine. Raises E0501 naming file, line and entry at fault."""
    isa = entries.get("isa", "")
    if not isinstance(isa, str) or (isa and isa not in ISA_NAMES):
        raise FuselineError(
            "E0501",
            f"isa is none that fuseline emits: {isa!r}",
            node=location_of(path, "", "isa"),
            hint=f"one of: {', '.join(ISA_NAMES)}",
        )
    base = machine(isa)
    given: dict[str, Any] = {}
    for name, value in entries.items():
        if name == "costs":
            given[name] = costs_of(value, path, base.costs)
        elif name == "work_costs":
            given[name] = costs_of(value, path, base.work_costs, name)
        elif name in _SIZES:
            if not is_positive(value):
                at = location_of(path, "", name)
                raise FuselineError("E0501", f"{name} is no positive integer: {value!r}", node=at)
            given[name] = value
    return replace(base, **given), {name: value for name, value in entries.items() if name not in _OF_A_MACHINE}
