"""Parts of a program that IREE compiled, run as host calls: the module and its parameters are constants of the call.

`install` registers it with the runtime; iree-base-runtime is imported by the first call.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from fuseline import executors
from fuseline.interop.iree_runtime import NAME, Module
from fuseline.runtime import host

MODULES_KEPT = 16
"""Modules that are kept loaded; the least recently used goes first."""


class _Call(NamedTuple):
    """What a host call says: a function of the module known by `key`, the device that runs it, and which arguments are
    numbers."""

    function: str
    key: str
    device: str
    indices: frozenset[int]


def install() -> None:
    """Let the runtime run IREE's code here."""
    host.register(executors.IREE, execute, lambda node: NAME)


def execute(node: bytes, operands: Sequence[Any]) -> list[Any]:
    """Call a function of IREE's: `operands` are the module, its parameters, and the arguments.

    Raises FuselineError: E0503 without the package, E0401 for a module that it does not load, E0106 where it fails.
    """
    call, (code, parameters, *given) = _read(node), operands
    arguments = [
        int(np.asarray(value).reshape(-1)[0]) if number in call.indices else value for number, value in enumerate(given)
    ]
    return list(_module(call, code, parameters).call(call.function, arguments))


def forget() -> None:
    """Forget the modules that are kept loaded."""
    with _lock:
        _modules.clear()


@lru_cache(maxsize=256)
def _read(node: bytes) -> _Call:
    said = json.loads(node)
    return _Call(said["function"], said["key"], said["device"], frozenset(said["indices"]))


_lock = threading.Lock()
_modules: OrderedDict[tuple[str, str], Module] = OrderedDict()


def _module(call: _Call, code: Any, parameters: Any) -> Module:
    key = call.key, call.device
    with _lock:
        found = _modules.get(key)
        if found is None:
            found = _modules[key] = Module(code, parameters, call.device)
            while len(_modules) > MODULES_KEPT:
                _modules.popitem(last=False)
        else:
            _modules.move_to_end(key)
        return found
