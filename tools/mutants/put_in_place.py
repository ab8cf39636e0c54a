"""Puts a mutant in place of the function it changes, in this process: the function objects stay, so everything that imported one runs the change."""

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


def put_in_place(root: Path, mutant: Mutant) -> int:
    """Give every live function of the mutant's (closures too) its new code and default values; returns how many there were."""
    path = str(root / mutant.file)
    tree = ast.parse(mutant.after)
    codes = {(code.co_qualname, code.co_firstlineno): code for code in _codes(compile(tree, path, "exec", dont_inherit=True))}
    inside = f"{mutant.function}.<locals>."
    changed = 0
    for thing in gc.get_objects():
        if isinstance(thing, FunctionType) and thing.__code__.co_filename == path:
            own = thing.__code__.co_qualname
            new = codes.get((own, thing.__code__.co_firstlineno))
            if new is not None and (own == mutant.function or own.startswith(inside)) and new.co_freevars == thing.__code__.co_freevars:
                thing.__code__ = new
                _set_defaults(thing, tree)
                changed += 1
    _forget()
    return changed


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _set_defaults(function: FunctionType, tree: ast.Module) -> None:
    """Default values that are literals: the others are computed where the function is defined, and mutants leave those alone."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and _first_line(node) == function.__code__.co_firstlineno:
            old = function.__defaults__ or ()
            function.__defaults__ = tuple(_literal(new, value) for new, value in zip(node.args.defaults, old, strict=True)) or None
            keywords = function.__kwdefaults__ or {}
            news = {name.arg: value for name, value in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True) if value is not None}
            function.__kwdefaults__ = {name: _literal(news[name], value) for name, value in keywords.items()} or None


def _first_line(node: ast.FunctionDef) -> int:
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def _literal(node: ast.expr, otherwise: Any) -> Any:
    with contextlib.suppress(ValueError):
        return ast.literal_eval(node)
    return otherwise


def _forget() -> None:
    """Empty the caches: what unchanged code put there would hide the change."""
    for thing in gc.get_objects():
        if isinstance(thing, functools._lru_cache_wrapper):  # pyright: ignore[reportPrivateUsage]
            thing.cache_clear()
