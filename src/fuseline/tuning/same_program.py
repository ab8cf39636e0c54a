"""Whether two programs are the same to the byte: choices that change nothing need no measuring."""

from __future__ import annotations

from typing import Any

import numpy as np

from fuseline.runtime import Artifact


def same_program(first: Any, second: Any) -> bool:
    """Whether two artifacts run the same code on the same constants, with the same steps in the same memory; False for
    programs of another kind."""
    if not isinstance(first, Artifact) or not isinstance(second, Artifact):
        return False
    if (first.fallback is None) != (second.fallback is None):
        return False
    return _same(first, second) and (first.fallback is None or same_program(first.fallback, second.fallback))


def _same(first: Artifact, second: Artifact) -> bool:
    fields = ("code", "program", "machine", "entries", "fixups")
    return all(getattr(first, field) == getattr(second, field) for field in fields) and _same_constants(first, second)


def _same_constants(first: Artifact, second: Artifact) -> bool:
    pairs = zip(first.constants, second.constants, strict=False)
    return len(first.constants) == len(second.constants) and all(np.array_equal(*pair) for pair in pairs)
