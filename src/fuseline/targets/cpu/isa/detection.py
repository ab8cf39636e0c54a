"""Which ISA this CPU has, and the description for a name such as `avx2`."""

from __future__ import annotations

import importlib
from dataclasses import replace
from functools import cache
from pathlib import Path

from fuseline.errors import FuselineError
from fuseline.targets.cpu.isa.description import Machine

ISA_NAMES = ("avx512vnni", "avx512", "avxvnni", "avx2", "baseline", "neon")
"""Best first; the order of detection."""


def machine(name: str = "") -> Machine:
    """The description called `name`; this CPU's own for an empty name. Raises E0501 for a name that is none of
    `ISA_NAMES`."""
    if not name:
        return detect()
    if name not in ISA_NAMES:
        raise FuselineError("E0501", f"no CPU description is called {name!r}", hint=f"one of: {', '.join(ISA_NAMES)}")
    return importlib.import_module(f"fuseline.targets.cpu.isa.{name}").MACHINE


@cache
def cpu_flags(source: str = "/proc/cpuinfo") -> frozenset[str]:
    """The feature flags that the kernel reports for the first CPU; empty where there is no such file."""
    path = Path(source)
    if not path.exists():
        return frozenset()
    for line in path.read_text().splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("flags", "Features"):
            return frozenset(value.split())
    return frozenset()


@cache
def detect(source: str = "/proc/cpuinfo") -> Machine:
    """The best ISA whose flags this CPU shows, with its cache sizes; raises E0403 when it has none of them."""
    flags = cpu_flags(source)
    for name in ISA_NAMES:
        found = machine(name)
        if flags.issuperset(found.needs):
            return replace(
                found, l1_bytes=_cache_bytes("1", found.l1_bytes), l2_bytes=_cache_bytes("2", found.l2_bytes)
            )
    raise FuselineError(
        "E0403",
        "this CPU has none of the instruction sets fuseline emits",
        hint=f"needed: one of {', '.join(ISA_NAMES)}",
    )


def _cache_bytes(level: str, default: int) -> int:
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        if _read(index / "level") == level and _read(index / "type") in ("Data", "Unified"):
            size = _read(index / "size")
            return int(size[:-1]) * 1024 if size.endswith("K") else default
    return default


def _read(path: Path) -> str:
    return path.read_text().strip() if path.exists() else ""
