"""The ops of StableHLO and of the dialects that stand beside it, by name: any operands, results, attributes and
regions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Self, cast

from xdsl.ir import Attribute, Operation
from xdsl.ir.core import OpTraits
from xdsl.traits import IsTerminator

from fuseline.ir.hlo.special_syntax import SPECIAL
from fuseline.ir.hlo.syntax import parse_short_form

if TYPE_CHECKING:
    from xdsl.parser import Parser

_ELEMENTWISE = (
    "abs add and atan2 cbrt ceil clamp compare complex convert cosine count_leading_zeros divide exponential "
    "exponential_minus_one floor imag is_finite log log_plus_one logistic maximum minimum multiply negate not or "
    "popcnt power real reduce_precision remainder round_nearest_afz round_nearest_even rsqrt select shift_left "
    "shift_right_arithmetic shift_right_logical sign sine sqrt subtract tan tanh xor"
).split()
_MOVING = (
    "bitcast_convert broadcast broadcast_in_dim concatenate constant dynamic_broadcast_in_dim dynamic_gather "
    "dynamic_iota dynamic_pad dynamic_reshape dynamic_slice dynamic_update_slice gather get_dimension_size iota pad "
    "real_dynamic_slice reshape reverse scatter set_dimension_size slice torch_index_select transpose"
).split()
_COMPUTING = (
    "batch_norm_grad batch_norm_inference batch_norm_training cholesky convolution dot dot_general dynamic_conv einsum "
    "fft map reduce reduce_window rng rng_bit_generator select_and_scatter sort triangular_solve unary_einsum "
    "uniform_dequantize uniform_quantize"
).split()
_CONTROL = (
    "after_all all_gather all_reduce all_to_all async_done async_start case collective_broadcast collective_permute "
    "composite create_token cross-replica-sum custom_call get_tuple_element if infeed optimization_barrier outfeed "
    "partition_id recv reduce_scatter replica_id return send tuple while"
).split()
_CHLO = (
    "_asin_acos_kernel acos acosh asin asinh atan atanh bessel_i1e broadcast_add broadcast_and broadcast_atan2 "
    "broadcast_compare broadcast_complex broadcast_divide broadcast_maximum broadcast_minimum broadcast_multiply "
    "broadcast_next_after broadcast_or broadcast_polygamma broadcast_power broadcast_remainder broadcast_select "
    "broadcast_shift_left broadcast_shift_right_arithmetic broadcast_shift_right_logical broadcast_subtract "
    "broadcast_xor broadcast_zeta conj constant constant_like cosh digamma erf erf_inv erfc is_inf is_neg_inf "
    "is_pos_inf lgamma next_after polygamma ragged_dot scan sinh square tan top_k zeta"
).split()
_MHLO = "add_dependency copy erf topk tan return".split()
_SDY = "manual_computation mesh named_computation propagation_barrier return sharding_constraint sharding_group".split()


class HloOp(Operation):
    """An op of one of these dialects. `attribute` finds what it says of itself, wherever the text has it."""

    name: ClassVar[str] = "stablehlo.?"
    traits: ClassVar[OpTraits] = OpTraits(lambda: ())

    def attribute(self, name: str) -> Attribute | None:
        """A property or an attribute; None where the op has neither."""
        found = self.properties.get(name)
        return self.attributes.get(name) if found is None else found

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """The op as tools print it, behind its name."""
        special = SPECIAL.get(cls.name)
        parsed = special(parser) if special is not None else parse_short_form(parser, cls.name)
        return cls.create(
            operands=parsed.operands, result_types=parsed.results, attributes=parsed.attributes, regions=parsed.regions
        )


class HloReturnOp(HloOp):
    """What ends a region."""

    traits: ClassVar[OpTraits] = OpTraits(lambda: (IsTerminator(),))


def _class(dialect: str, name: str) -> type[HloOp]:
    base = HloReturnOp if name == "return" else HloOp
    return cast("type[HloOp]", type(name, (base,), {"name": f"{dialect}.{name}"}))


def _classes(dialect: str, names: Sequence[str]) -> list[type[HloOp]]:
    return [_class(dialect, name) for name in names]


OPS: dict[str, list[type[HloOp]]] = {
    "stablehlo": _classes("stablehlo", [*_ELEMENTWISE, *_MOVING, *_COMPUTING, *_CONTROL]),
    "chlo": _classes("chlo", _CHLO),
    "mhlo": _classes("mhlo", _MHLO),
    "sdy": _classes("sdy", _SDY),
}
"""The op classes of each dialect."""
