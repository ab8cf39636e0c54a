"""JAX functions as compiled programs: exported to StableHLO, compiled, called with the same trees of arrays.

fuseline.jax.compile(f, x)  ->  jax.export  ->  StableHLO text  ->  fuseline.compile  ->  CompiledFunction
"""

from __future__ import annotations

import re
import tempfile
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from fuseline.api import compile as compile_model
from fuseline.compiled_model import CompiledModel
from fuseline.errors import FuselineError, MissingPackageError

_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")


def jax_module(name: str) -> Any:
    """A module of jax. Raises MissingPackageError (E0503) where jax is not installed."""
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingPackageError(
            "E0503", "jax is not installed", node="jax", hint="pip install 'fuseline[jax]'"
        ) from error


class CompiledFunction:
    """A compiled JAX function: called as that is, it answers the same tree of `jax.Array`s.

    `model` is the compiled program (its records, its inputs by name), `text` the StableHLO that it was made from.
    """

    def __init__(self, model: CompiledModel, exported: Any, text: str) -> None:
        self.model, self.text = model, text
        self._exported = exported
        self._jax, self._trees = jax_module("jax"), jax_module("jax.tree_util")
        self._kept: tuple[int, ...] = tuple(exported.module_kept_var_idx)
        self._dtypes = [np.dtype(_array_dtype(self._jax, value)) for value in exported.in_avals]

    def __call__(self, *args: Any, **named: Any) -> Any:
        """The function's results for arguments of the same structure, shapes and dtypes as it was compiled for.

        Raises FuselineError: E0501 for arguments of another structure, E0203 and E0204 as a model's `run` does.
        """
        leaves, tree = self._trees.tree_flatten((args, named))
        if tree != self._exported.in_tree:
            message = f"the arguments are {tree}, the function was compiled for {self._exported.in_tree}"
            raise FuselineError("E0501", message, hint="compile it again for arguments of this structure")
        inputs = self.model.inputs
        feeds = {item.name: self._array(leaves[i], i) for item, i in zip(inputs, self._kept, strict=True)}
        found = [self._jax.numpy.asarray(array) for array in self.model.run(feeds).values()]
        return self._trees.tree_unflatten(self._exported.out_tree, found)

    def _array(self, leaf: Any, index: int) -> Any:
        """A leaf as an array; a Python number takes the dtype that the function was compiled for."""
        if isinstance(leaf, bool | int | float | complex):
            return np.asarray(leaf, self._dtypes[index])
        if _is_key(self._jax, getattr(leaf, "dtype", None)):
            leaf = self._jax.random.key_data(leaf)
        array = np.asarray(leaf)
        if isinstance(leaf, np.ndarray | np.generic):
            array = array.astype(_canonical(self._jax, array.dtype), copy=False)
        return array


def _canonical(jax: Any, dtype: Any) -> Any:
    """The dtype that JAX makes of one: 32 bits for 64 without `jax_enable_x64`."""
    return jax.dtypes.canonicalize_dtype(dtype)


def _is_key(jax: Any, dtype: Any) -> bool:
    return dtype is not None and jax.dtypes.issubdtype(dtype, jax.dtypes.prng_key)


def _array_dtype(jax: Any, value: Any) -> Any:
    return np.dtype(np.uint32) if _is_key(jax, value.dtype) else value.dtype


def export_function(function: Callable[..., Any], args: Sequence[Any]) -> Any:
    """`jax.export` of a function for the CPU, with calls of libraries left in. Raises FuselineError: E0503 without jax,
    E0501 for a program of several devices."""
    jax, export = jax_module("jax"), jax_module("jax.export")
    jitted = function if hasattr(function, "trace") else jax.jit(function)
    allowed = [export.DisabledSafetyCheck.custom_call(target) for target in _LIBRARY_CALLS]
    exported = export.export(jitted, platforms=["cpu"], disabled_checks=allowed)(*args)
    if exported.nr_devices != 1:
        raise FuselineError("E0501", f"the function runs on {exported.nr_devices} devices, not one")
    return exported


_LIBRARY_CALLS = ("Sharding", "shape_assertion")


def compile_function(function: Callable[..., Any], *args: Any, **options: Any) -> CompiledFunction:
    """`function` compiled for arguments like `args`: arrays, `jax.ShapeDtypeStruct`s (symbolic sizes included) or
    Python numbers, in any pytrees. What the function closes over is constant in the program.

    `options` are those of `fuseline.compile` (target, threads, fusion, ..).

    Raises FuselineError: E0503 without jax, E0306 for what has no form here, with the place in the function's own
    terms, and whatever `fuseline.compile` raises. What the function itself raises while JAX traces it passes through.
    """
    exported = export_function(function, args)
    text = exported.mlir_module()
    with tempfile.TemporaryDirectory(prefix="fuseline-") as folder, warnings.catch_warnings():
        # the compiler's forks run nothing of JAX
        warnings.filterwarnings("ignore", message=r"os\.fork\(\) was called", category=RuntimeWarning)
        path = Path(folder) / f"{_UNSAFE.sub('_', exported.fun_name) or 'function'}.mlir"
        path.write_text(text, encoding="utf-8")
        return CompiledFunction(compile_model(path, **options), exported, text)
