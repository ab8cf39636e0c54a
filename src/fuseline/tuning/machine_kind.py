"""What kind of machine this is: where times that were measured hold. Machines of one kind have one name; results of
different kinds are never compared."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from fuseline.runtime.cpu import machine_name
from fuseline.runtime.processors import allowed_processors

CPU_INFO = "/proc/cpuinfo"
CACHES = "/sys/devices/system/cpu/cpu{}/cache"

_MODEL_KEYS = ("model name", "cpu model", "CPU part", "Hardware", "Processor")


def machine_kind() -> str:
    """Instruction set, model of the CPU, its caches, and how many processors this process may use:
    `x86_64-avx512 AMD EPYC 9R14, L1 32K L2 1024K L3 32768K, 2 processors`."""
    processors = allowed_processors()
    return described(_isa(), cpu_model(CPU_INFO), cache_sizes(CACHES.format(processors[0])), len(processors))


def described(isa: str, model: str, caches: tuple[tuple[str, str], ...], processors: int) -> str:
    """The name of such a machine.

    >>> described("aarch64-neon", "", (("1", "64K"),), 1)
    'aarch64-neon unknown CPU, L1 64K, 1 processor'
    """
    sizes = " ".join(f"L{level} {size}" for level, size in caches) or "caches unknown"
    return f"{isa} {model or 'unknown CPU'}, {sizes}, {processors} processor{'s' * (processors != 1)}"


@cache
def cpu_model(source: str) -> str:
    """The model that the kernel reports for the first CPU, its spaces made single; empty where it does not say."""
    try:
        text = Path(source).read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
    for key in _MODEL_KEYS:
        found = re.search(rf"^{key}\s*:\s*(\S.*)$", text, re.MULTILINE)
        if found:
            return " ".join(found[1].split())
    return ""


@cache
def cache_sizes(folder: str) -> tuple[tuple[str, str], ...]:
    """Level and size of the caches for data, the smallest level first; nothing where the kernel does not say."""
    rows = (tuple(_read(index / file) for file in ("level", "type", "size")) for index in Path(folder).glob("index*"))
    return tuple(sorted((level, size) for level, kind, size in rows if kind in ("Data", "Unified")))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _isa() -> str:
    from fuseline.errors import FuselineError
    from fuseline.targets.cpu.isa.detection import detect

    try:
        return f"{machine_name()}-{detect().name}"
    except FuselineError:  # E0403: none of ours; other targets still run here
        return machine_name()
