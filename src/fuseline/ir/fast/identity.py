"""Answers about immutable parts of the IR (attributes, affine maps), remembered by the identity of the part.

Hashing an attribute or a map walks all of it, and equal ones are mostly one object (`attributes.py`): a look-up by
identity takes a tenth of the time. What is asked about is kept alive, so that its identity is not given to another
part; the tables are bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import wraps
from typing import TypeVar

_MANY = 1 << 14

PartT = TypeVar("PartT")
RestT = TypeVar("RestT", bound=Hashable)
AnswerT = TypeVar("AnswerT")


def by_identity(function: Callable[[PartT], AnswerT]) -> Callable[[PartT], AnswerT]:
    """`function` of one immutable part, computed once per object."""
    known: dict[int, tuple[PartT, AnswerT]] = {}

    @wraps(function)
    def remembered(part: PartT) -> AnswerT:
        found = known.get(id(part))
        if found is None:
            if len(known) >= _MANY:
                known.clear()
            found = known[id(part)] = part, function(part)
        return found[1]

    return remembered


def by_first_identity(function: Callable[[PartT, RestT], AnswerT]) -> Callable[[PartT, RestT], AnswerT]:
    """`function` of an immutable part and something hashable, computed once per object and value."""
    known: dict[tuple[int, RestT], tuple[PartT, AnswerT]] = {}

    @wraps(function)
    def remembered(part: PartT, rest: RestT) -> AnswerT:
        key = id(part), rest
        found = known.get(key)
        if found is None:
            if len(known) >= _MANY:
                known.clear()
            found = known[key] = part, function(part, rest)
        return found[1]

    return remembered


def by_identities(function: Callable[[tuple[PartT, ...]], AnswerT]) -> Callable[[tuple[PartT, ...]], AnswerT]:
    """`function` of a tuple of immutable parts, computed once per tuple of the same objects."""
    known: dict[tuple[int, ...], tuple[tuple[PartT, ...], AnswerT]] = {}

    @wraps(function)
    def remembered(parts: tuple[PartT, ...]) -> AnswerT:
        key = tuple(map(id, parts))
        found = known.get(key)
        if found is None:
            if len(known) >= _MANY:
                known.clear()
            found = known[key] = parts, function(parts)
        return found[1]

    return remembered
