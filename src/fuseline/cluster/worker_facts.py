"""What a worker says of itself before it is given work; called on the worker.

The answer is a plain mapping: what an older or newer fuseline answers must be readable here, to be refused by name.
"""

from __future__ import annotations

import hashlib
import os
import socket
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from fuseline.cluster.cores import physical_cores
from fuseline.runtime.cpu import machine_features, machine_name
from fuseline.tuning.machine_kind import machine_kind
from fuseline.version import VERSION

PACKAGES = ("xdsl", "llvmlite", "numpy")
"""Packages whose versions decide which code comes out."""


def worker_facts() -> dict[str, Any]:
    """The facts about this process, as `WorkerFacts` has them."""
    return {
        "version": VERSION,
        "sources": sources_digest(),
        "python": "{}.{}".format(*sys.version_info),
        "packages": {name: _version(name) for name in PACKAGES},
        "machine": machine_name(),
        "features": sorted(machine_features()),
        "isa": _isa(),
        "kind": machine_kind(),
        "host": socket.gethostname(),
        "process": os.getpid(),
        "cores": len(physical_cores()),
    }


def _isa() -> str:
    from fuseline.errors import FuselineError
    from fuseline.targets.cpu.isa.detection import detect

    try:
        return detect().name
    except FuselineError:  # E0403: targets other than cpu still run here
        return ""


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


@cache
def sources_digest() -> str:
    """The content of this package's sources: a checkout changes without a new version."""
    root = Path(__file__).parents[1]
    found = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        found.update(f"{path.relative_to(root).as_posix()}\0".encode())
        found.update(path.read_bytes())
    return found.hexdigest()[:12]
