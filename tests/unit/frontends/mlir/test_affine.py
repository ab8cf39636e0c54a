"""`affine` ops as index arithmetic, against the maps themselves."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuseline.errors import FuselineError
from fuseline.frontends.mlir.affine import expand_affine
from fuseline.ir.context import new_context
from fuseline.ir.text import parse_module
from tests.unit.passes.cleanup.expanding import names, run


def _text(op: str, operands: str) -> str:
    return f"""func.func @main(%i: index, %j: index, %s: index) -> tensor<1xindex> {{
  %v = {op}{operands}
  %r = tensor.from_elements %v : tensor<1xindex>
  return %r : tensor<1xindex>
}}"""


def _value(op: str, operands: str, *arguments: int) -> int:
    module = parse_module(_text(op, operands), new_context())
    expand_affine(module)
    module.verify()
    assert not any(name.startswith("affine.") for name in names(module))
    return int(run(module, *arguments)[0])


PLACE = st.integers(-20, 20)


@settings(max_examples=30)
@given(PLACE, PLACE, PLACE, st.sampled_from(["floordiv", "ceildiv", "mod"]), st.integers(1, 5))
def test_a_map_of_dimensions_and_symbols(i: int, j: int, s: int, division: str, by: int) -> None:
    op = f"affine.apply affine_map<(d0, d1)[s0] -> ((d0 * 3 + d1 - s0) {division} {by} + 7)>"
    inner = i * 3 + j - s
    expected = {"floordiv": inner // by, "ceildiv": -(-inner // by), "mod": inner % by}[division] + 7
    assert _value(op, "(%i, %j)[%s]", i, j, s) == expected


@given(PLACE, PLACE)
@settings(max_examples=15)
def test_a_minimum(i: int, j: int) -> None:
    assert _value("affine.min affine_map<(d0, d1) -> (d0 + 1, d1 * 2, 9)>", "(%i, %j)", i, j, 0) == min(i + 1, 2 * j, 9)


@settings(max_examples=30)
@given(PLACE, PLACE, st.integers(1, 9), st.sampled_from(["floordiv", "ceildiv", "mod", "*"]))
def test_symbols_are_factors_and_divisors(i: int, j: int, s: int, operation: str) -> None:
    """A product of symbols, in either order, and what is divided by one."""
    op = f"affine.apply affine_map<(d0)[s0, s1] -> ((d0 + s0 * 2) {operation} s1 - s1 * d0 + 2 * (s0 * s1))>"
    whole = i + 2 * j
    first = {"floordiv": whole // s, "ceildiv": -(-whole // s), "mod": whole % s, "*": whole * s}[operation]
    assert _value(op, "(%i)[%j, %s]", i, j, s) == first - s * i + 2 * j * s


@pytest.mark.parametrize("term", ["d0 * d1", "d0 floordiv d1", "s0 mod d0", "(d0 + s0) * (d1 - s0)"])
def test_dimensions_are_no_factors_of_each_other(term: str) -> None:
    text = _text(f"affine.apply affine_map<(d0, d1)[s0] -> ({term})>", "(%i, %j)[%s]")
    with pytest.raises(FuselineError) as caught:
        parse_module(text, new_context())
    assert caught.value.code == "E0301"


@pytest.mark.parametrize("division", ["floordiv 0", "mod -2", "ceildiv 0"])
def test_a_division_by_what_is_not_positive(division: str) -> None:
    module = parse_module(_text(f"affine.apply affine_map<(d0) -> (d0 {division})>", "(%i)"), new_context())
    with pytest.raises(FuselineError, match=f"affine.apply: divides by {division.split()[1]}") as caught:
        expand_affine(module)
    assert caught.value.code == "E0302" and caught.value.node
