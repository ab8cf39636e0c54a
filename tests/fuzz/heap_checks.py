"""The heap checks of glibc, where it has them: what is written beyond a tensor ends the process that did it as soon as
the tensor is freed (`mallopt(3)`, `M_CHECK_ACTION`), so that a campaign reports a crash in place of a right result."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Mapping

LIBRARY = "libc_malloc_debug.so.0"
"""Since glibc 2.34 the checks are in a library of their own."""


def checked(environment: Mapping[str, str]) -> dict[str, str] | None:
    """The environment of a process with the checks; None where `environment` has them or this C library has none."""
    if environment.get("MALLOC_CHECK_") or not _is_there():
        return None
    preloaded = " ".join(filter(None, [LIBRARY, environment.get("LD_PRELOAD")]))
    return {**environment, "LD_PRELOAD": preloaded, "MALLOC_CHECK_": "3"}


def restart() -> None:
    """Start this program again with the checks; returns where it has them or there are none."""
    environment = checked(os.environ)
    if environment is not None:
        os.execve(sys.executable, sys.orig_argv, environment)


def _is_there() -> bool:
    try:
        ctypes.CDLL(LIBRARY)
    except OSError:
        return False
    return True
