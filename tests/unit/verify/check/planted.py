"""Faults of kernels, put into the text of their code as it is printed: what a wrong emitter would make."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

from fuseline.targets.cpu import target as cpu_target


def wrong_code(change: Callable[[str], str]) -> Any:
    """A context in which the text of every kernel is changed before it is compiled. Its symbol follows from the text,
    so that no cache has it."""
    plain = cpu_target.print_llvm
    return mock.patch.object(cpu_target, "print_llvm", lambda kernels, machine: change(plain(kernels, machine)))
