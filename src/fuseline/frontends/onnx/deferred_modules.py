"""Imports that are put off until something of the module is asked for.

onnx-ir imports sympy (430 modules, a seventh of a small compile) for arithmetic on symbolic sizes, which this frontend
does with `ir/dim.py`. `importlib.util.LazyLoader` does not help: before Python 3.12 `import name` itself asks a module
that is there for its `__spec__`, and so loads it.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any


class _Deferred(ModuleType):
    """Stands for a module until an attribute is asked for, and hands on to it from then."""

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)


@contextmanager
def deferred(*names: str) -> Generator[None]:
    """Modules imported meanwhile get `names` put off where they were not there yet; imports afterwards are as ever."""
    absent = {name: _Deferred(name) for name in names if name not in sys.modules}
    sys.modules.update(absent)
    try:
        yield
    finally:
        for name, module in absent.items():
            if sys.modules.get(name) is module:
                del sys.modules[name]
