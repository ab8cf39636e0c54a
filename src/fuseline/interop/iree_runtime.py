"""A module of IREE, loaded into iree-base-runtime and ready to be called with arrays.

Everything of that package is asked for here, when a module is first loaded.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fuseline.errors import FuselineError, MissingPackageError

Array = NDArray[Any]

NAME = "iree-base-runtime"
_FORMAT = "safetensors"
_SCOPE = "model"

SYNCHRONOUS, THREADED = "local-sync", "local-task"
"""Devices: the calling thread, or threads of IREE's own."""


class Module:
    """A loaded module. Calls from several threads wait for each other: a context of IREE runs one at a time.

    Args:
        code: the `.vmfb`. parameters: a safetensors archive with what it loads, empty for none; both must stay as they
        are while this object lives. device: `SYNCHRONOUS` or `THREADED`.

    Raises FuselineError: E0503 without the package, E0401 for what it does not load.
    """

    def __init__(self, code: Array, parameters: Array, device: str) -> None:
        rt = _package()
        self._kept = code, parameters
        self._lock = threading.Lock()
        try:
            self._device = rt.get_device(device)
            instance = _instance()
            modules = [rt.create_hal_module(instance, self._device)]
            if parameters.size:
                modules.append(rt.create_io_parameters_module(instance, _provider(rt, parameters)))
            self._module = rt.VmModule.copy_buffer(instance, code.data)
            self._context = rt.VmContext(instance, [*modules, self._module])
        except (RuntimeError, ValueError) as error:
            raise FuselineError("E0401", f"IREE does not load the program: {_first_line(error)}") from error
        self._functions: dict[str, Any] = {}

    def call(self, function: str, arguments: Sequence[Array | int]) -> list[Array]:
        """The results of a function of the module: arrays that nobody else holds. Raises FuselineError (E0106) for what
        it refuses."""
        with self._lock:
            try:
                found = self._invoker(function)(*arguments)
            except (RuntimeError, ValueError) as error:
                raise FuselineError("E0106", f"IREE cannot run {function}: {_first_line(error)}") from error
        results = found if isinstance(found, tuple) else () if found is None else (found,)
        return [np.asarray(result) for result in results]

    def _invoker(self, function: str) -> Any:
        if function not in self._functions:
            found = self._module.lookup_function(function)
            if found is None:
                raise FuselineError("E0401", f"the module has no function {function}")
            self._functions[function] = _package().FunctionInvoker(self._context, self._device, found)
        return self._functions[function]


def _provider(rt: Any, parameters: Array) -> Any:
    index = rt.ParameterIndex()
    index.load_from_file_handle(rt.FileHandle.wrap_memory(parameters), _FORMAT)
    return index.create_provider(scope=_SCOPE)


@cache
def _instance() -> Any:
    return _package().VmInstance()


@cache
def _package() -> Any:
    """The package, which is not to list at the end of the process what is still loaded then. Raises FuselineError
    (E0503) where it is not installed."""
    try:
        import iree.runtime as package  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        hint = "pip install 'fuseline[iree]'"
        raise MissingPackageError(
            "E0503", f"{NAME} is not installed, which runs what IREE compiled", hint=hint
        ) from error
    getattr(getattr(package, "_binding", None), "disable_leak_checker", lambda: None)()
    return package


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
