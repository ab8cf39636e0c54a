"""The name of a loop class in a body."""

from typing import Any, TypeAlias

LoopRef: TypeAlias = int | tuple[Any, int]
"""The number of a class (`FusedLoops.classes`), or a dimension of a value or loop of an op that is one by itself."""
