"""Puts a mutant in place of the function it changes, in this process: the function objects stay, so everything that
imported one runs the change."""

from __future__ import annotations

import ast
import contextlib
import functools
import gc
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from .changes import Mutant


class Live:
    """The functions of this process by the file they are written in, and its caches: looked for once, before children
    are forked."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.functions: dict[str, list[FunctionType]] = {}
        self.caches: list[Any] = []
        for thing in gc.get_objects():
            if isinstance(thing, FunctionType):
                self.functions.setdefault(thing.__code__.co_filename, []).append(thing)
            elif isinstance(thing, functools._lru_cache_wrapper):  # pyright: ignore[reportPrivateUsage]
                self.caches.append(thing)

    def put_in_place(self, mutant: Mutant) -> int:
        """Give the mutant's function (closures too) its new code and default values; returns how many there were."""
        path = str(self.root / mutant.file)
        tree = ast.parse(mutant.after)
        codes = {
            (code.co_qualname, code.co_firstlineno): code
            for code in _codes(compile(tree, path, "exec", dont_inherit=True))
        }
        changed = 0
        for function in self.functions.get(path, []):
            own = function.__code__
            new = codes.get((own.co_qualname, own.co_firstlineno))
            if new is not None and _is_of(mutant, own) and new.co_freevars == own.co_freevars:
                function.__code__ = new
                _set_defaults(function, tree)
                changed += 1
        self._forget()
        return changed

    def _forget(self) -> None:
        """Empty the caches: what unchanged code put there would hide the change."""
        for cache in self.caches:
            cache.cache_clear()


def _is_of(mutant: Mutant, code: CodeType) -> bool:
    return code.co_qualname == mutant.function or code.co_qualname.startswith(f"{mutant.function}.<locals>.")


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _set_defaults(function: FunctionType, tree: ast.Module) -> None:
    """Default values that are literals: the others are computed where the function is defined, and mutants leave those
    alone."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and _first_line(node) == function.__code__.co_firstlineno:
            old = function.__defaults__ or ()
            function.__defaults__ = (
                tuple(_literal(new, value) for new, value in zip(node.args.defaults, old, strict=True)) or None
            )
            keywords = function.__kwdefaults__ or {}
            news = {
                name.arg: value
                for name, value in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
                if value is not None
            }
            function.__kwdefaults__ = {name: _literal(news[name], value) for name, value in keywords.items()} or None


def _first_line(node: ast.FunctionDef) -> int:
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def _literal(node: ast.expr, otherwise: Any) -> Any:
    with contextlib.suppress(ValueError):
        return ast.literal_eval(node)
    return otherwise
