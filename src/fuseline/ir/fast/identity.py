"""Answers about immutable items of the IR (attributes, affine maps), remembered by the identity of the item.

Hashing an attribute or a map walks all of it, and equal ones are mostly one object (`attributes.py`): a look-up by
identity takes a tenth of the time. What is asked about is kept alive, so that its identity is not given to another
item; the tables are bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import wraps
from typing import TypeVar

_MANY = 1 << 14

ItemT = TypeVar("ItemT")
RestT = TypeVar("RestT", bound=Hashable)
AnswerT = TypeVar("AnswerT")


def by_identity(function: Callable[[ItemT], AnswerT]) -> Callable[[ItemT], AnswerT]:
    """`function` of one immutable item, computed once per object."""
    known: dict[int, tuple[ItemT, AnswerT]] = {}

    @wraps(function)
    def remembered(item: ItemT) -> AnswerT:
        found = known.get(id(item))
        if found is None:
            if len(known) >= _MANY:
                known.clear()
            found = known[id(item)] = item, function(item)
        return found[1]

    return remembered


def by_first_identity(function: Callable[[ItemT, RestT], AnswerT]) -> Callable[[ItemT, RestT], AnswerT]:
    """`function` of an immutable item and something hashable, computed once per object and value."""
    known: dict[tuple[int, RestT], tuple[ItemT, AnswerT]] = {}

    @wraps(function)
    def remembered(item: ItemT, rest: RestT) -> AnswerT:
        key = id(item), rest
        found = known.get(key)
        if found is None:
            if len(known) >= _MANY:
                known.clear()
            found = known[key] = item, function(item, rest)
        return found[1]

    return remembered


def by_identities(function: Callable[[tuple[ItemT, ...]], AnswerT]) -> Callable[[tuple[ItemT, ...]], AnswerT]:
    """`function` of a tuple of immutable items, computed once per tuple of the same objects."""
    known: dict[tuple[int, ...], tuple[tuple[ItemT, ...], AnswerT]] = {}

    @wraps(function)
    def remembered(items: tuple[ItemT, ...]) -> AnswerT:
        key = tuple(map(id, items))
        found = known.get(key)
        if found is None:
            if len(known) >= _MANY:
                known.clear()
            found = known[key] = items, function(items)
        return found[1]

    return remembered
