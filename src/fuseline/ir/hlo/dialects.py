"""The dialects, each loaded when a text names it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

from xdsl.ir import Attribute, Dialect, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition

from fuseline.ir.hlo.text_attribute import TextAttribute

_ATTRIBUTES: dict[str, str] = {
    "stablehlo": (
        "bounds channel_handle comparison_direction comparison_type conv custom_call_api_version dot dot_algorithm "
        "fft_type gather output_operand_alias precision result_accuracy result_accuracy_mode rng_algorithm "
        "rng_distribution scatter transpose type_extensions"
    ),
    "chlo": "comparison_direction comparison_type precision ragged_dot",
    "mhlo": "cross_program_prefetch frontend_attributes layout sharding spmd_parameters_shardings",
    "sdy": "axis_ref dim_sharding manual_axes mesh op_sharding_rule sharding sharding_per_value",
}
_TYPES: dict[str, str] = {"stablehlo": "future token", "chlo": "", "mhlo": "token", "sdy": ""}


class _Type(ParametrizedAttribute, TypeAttribute):
    """A type of which only the name is read."""

    name = "stablehlo.?"


def _attributes(dialect: str) -> list[type[Attribute]]:
    """Each is kept as the text that the program has for it."""
    texts = [_made(name, TextAttribute, dialect) for name in _ATTRIBUTES[dialect].split()]
    return [*texts, *(_made(name, _Type, dialect) for name in _TYPES[dialect].split())]


def _made(name: str, base: type[Any], dialect: str) -> type[Attribute]:
    made: Any = type(name, (base,), {"name": f"{dialect}.{name}"})
    return irdl_attr_definition(made)


@cache
def _dialect(name: str) -> Dialect:
    from fuseline.ir.hlo.ops import OPS

    return Dialect(name, list(OPS[name]), _attributes(name))


HLO_DIALECTS: Mapping[str, Callable[[], Dialect]] = {name: partial(_dialect, name) for name in _ATTRIBUTES}
"""What makes each dialect, by its name."""
