"""Themes, a file each: importing this imports every module here, which fills the table."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from tests.fuzz.theme import THEMES

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

__all__ = ["THEMES"]
