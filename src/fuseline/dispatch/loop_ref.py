"""The name of a loop in a body: that of an op, or the one that a dimension of a value stands for."""

from typing import Any, TypeAlias

LoopRef: TypeAlias = tuple[Any, int]
"""A dimension of a value, or a loop of an op."""
