"""Attributes computed when they are first asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class cached(Generic[T]):
    """`functools.cached_property` as it is from Python 3.12 on: without the lock, which costs more than most of what
    fusion asks for."""

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self.compute, self.name, self.__doc__ = compute, compute.__name__, compute.__doc__

    @overload
    def __get__(self, owner: None, kind: type) -> cached[T]: ...
    @overload
    def __get__(self, owner: object, kind: type | None = None) -> T: ...

    def __get__(self, owner: object | None, kind: type | None = None) -> cached[T] | T:
        if owner is None:
            return self
        found = owner.__dict__[self.name] = self.compute(owner)
        return found
