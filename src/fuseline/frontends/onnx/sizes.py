"""Sizes of a model's inputs: those the model declares, and what the caller's `shapes` makes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import onnx_ir as ir

from fuseline.errors import FuselineError
from fuseline.ir.dim import Dim, symbol

ShapeOption: TypeAlias = int | tuple[int, ...] | list[int]
"""All sizes of an input, or a symbol's one size (int) or bounds (`(lo, hi)`)."""


def graph_inputs(graph: ir.Graph) -> list[ir.Value]:
    """The inputs that a caller feeds (an input with an initializer is a constant)."""
    return [value for value in graph.inputs if value.name not in graph.initializers]


def _declared(value: ir.Value) -> list[int | str]:
    assert value.shape is not None
    out: list[int | str] = []
    for axis, size in enumerate(value.shape):
        if isinstance(size, int):
            out.append(size if size >= 0 else f"{value.name}_{axis}")
        else:
            out.append(size.value if size.value and _is_name(size.value) else f"{value.name}_{axis}")
    return out


def _is_name(text: str) -> bool:
    """Whether equal texts mean equal sizes: exporters write `?` or `None` for any unknown one."""
    return text.lower() not in ("none", "unknown") and any(character.isalpha() for character in text)


class InputSizes:
    """Answers the sizes of each input under the caller's `shapes`, and keeps the symbols that remain.

    Raises:
        FuselineError: E0108 for an option that names nothing, has the wrong rank, contradicts the model or has empty
        bounds.
    """

    def __init__(self, inputs: Sequence[ir.Value], shapes: Mapping[str, ShapeOption]) -> None:
        self.symbols: dict[str, Dim] = {}
        self._shapes = dict(shapes)
        self._values: dict[str, int] = {}
        names = {str(value.name) for value in inputs}
        declared = {
            size for value in inputs if value.shape is not None for size in _declared(value) if isinstance(size, str)
        }
        self._check_names(names, declared)
        for value in inputs:
            self._bind_whole(value)

    def _check_names(self, inputs: set[str], symbols: set[str]) -> None:
        for key, option in self._shapes.items():
            if key in inputs and not isinstance(option, int):
                continue
            if key not in symbols:
                known = ", ".join(sorted(inputs | symbols)) or "none"
                raise FuselineError(
                    "E0108", f"{key!r} is no input and no symbolic size of this model", node=key, hint=f"known: {known}"
                )
            _check_symbol_option(key, option)

    def _bind_whole(self, value: ir.Value) -> None:
        name = str(value.name)
        option = self._shapes.get(name)
        if option is None or isinstance(option, int):
            return
        declared = _declared(value) if value.shape is not None else [f"{name}_{axis}" for axis in range(len(option))]
        if len(option) != len(declared):
            raise FuselineError(
                "E0108",
                f"{len(option)} sizes given, the model has {len(declared)}",
                node=name,
                hint=f"declared: {declared}",
            )
        for size, known in zip(option, declared, strict=True):
            self._bind(name, size, known)

    def _bind(self, name: str, size: int, known: int | str) -> None:
        previous = known if isinstance(known, int) else self._values.setdefault(known, size)
        if previous != size or size < 0:
            raise FuselineError(
                "E0108",
                f"size {size} contradicts {previous} ({known})",
                node=name,
                hint="give equal symbols equal sizes",
            )

    def of(self, value: ir.Value) -> tuple[Dim, ...] | None:
        """The sizes of one input; None where neither the model nor the caller tells its rank."""
        if value.shape is not None:
            return tuple(size if isinstance(size, int) else self._symbol(size) for size in _declared(value))
        option = self._shapes.get(str(value.name))
        return None if option is None or isinstance(option, int) else tuple(option)

    def _symbol(self, name: str) -> Dim:
        if name in self._values:
            return self._values[name]
        if name not in self.symbols:
            self.symbols[name] = self._fresh(name)
        return self.symbols[name]

    def _fresh(self, name: str) -> Dim:
        option = self._shapes.get(name)
        if option is None:
            return symbol(name, 0)
        if isinstance(option, int):
            return option
        return option[0] if option[0] == option[1] else symbol(name, option[0], option[1])


def _check_symbol_option(key: str, option: ShapeOption) -> None:
    if isinstance(option, int):
        if option < 0:
            raise FuselineError("E0108", f"size {option} is negative", node=key)
    elif len(option) != 2 or option[0] > option[1] or option[0] < 0:
        raise FuselineError(
            "E0108", f"bounds {tuple(option)} are not (low, high)", node=key, hint="for example (1, 512)"
        )
