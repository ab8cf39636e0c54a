"""The table of StableHLO ops that are read: one function per op, found in `ops/` by its decorator."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, TypeAlias, TypeVar

if TYPE_CHECKING:
    from fuseline.frontends.onnx.tensors import Tensor
    from fuseline.frontends.stablehlo.hlo import Hlo

Lowering: TypeAlias = "Callable[[Hlo], Tensor | Sequence[Tensor]]"
LoweringT = TypeVar("LoweringT", bound="Callable[[Hlo], Tensor | Sequence[Tensor]]")

_TABLE: dict[str, Lowering] = {}


def hlo_op(*names: str) -> Callable[[LoweringT], LoweringT]:
    """Register a function as the lowering of ops (`add`, or with the dialect: `chlo.erf`). It raises FuselineError for
    what it refuses: `hlo.refusal` makes it. Raises KeyError for a name that has a lowering."""

    def register(function: LoweringT) -> LoweringT:
        for name in names:
            whole = name if "." in name else f"stablehlo.{name}"
            if whole in _TABLE:
                raise KeyError(f"two lowerings for {whole}")
            _TABLE[whole] = function
        return function

    return register


@cache
def _discover() -> None:
    from fuseline.frontends.stablehlo import ops

    for module in pkgutil.iter_modules(ops.__path__):
        importlib.import_module(f"{ops.__name__}.{module.name}")


def lowering_of(name: str) -> Lowering | None:
    """The function that lowers an op, None where there is none."""
    _discover()
    return _TABLE.get(name)


def lowered_ops() -> list[str]:
    """The names of all ops that are read, sorted."""
    _discover()
    return sorted(_TABLE)
