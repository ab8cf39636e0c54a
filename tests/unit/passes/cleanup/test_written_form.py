"""Of equal generics one form stays, whichever of them the program has first."""

from __future__ import annotations

import pytest

from fuseline.ir.context import new_context
from fuseline.ir.text import parse_module, print_module
from fuseline.passes.registry import make_pass
from tests.draws import RNG

ROWS, COLUMNS = (int(n) for n in RNG.integers(2, 9, 2))
TYPE = f"tensor<{ROWS}x{COLUMNS}xf32>"


def _generic(name: str, ins: str, maps: str, body: str) -> str:
    """A generic of two inputs; `maps`: the coordinates of each operand, the result's last."""
    written = ", ".join(f"affine_map<(i, j) -> ({one})>" for one in maps.split("; "))
    return f"""
  %{name} = linalg.generic {{indexing_maps = [{written}], iterator_types = ["parallel", "parallel"]}}
    ins({ins} : {TYPE}, {TYPE}) outs(%e : {TYPE}) {{
  ^bb0(%p: f32, %q: f32, %o: f32):
    {body}
    linalg.yield %v : f32
  }} -> {TYPE}"""


STRAIGHT = "i, j; i, j; i, j"
CALL = "%w = arith.mulf %p, %q : f32  %v = arith.addf %w, %p : f32"


def _merged(*generics: str, before: str = "") -> str:
    """What is left of a program that returns what each of `generics` makes."""
    text = "".join(generics)
    module = parse_module(
        f"""func.func @f(%x: {TYPE}, %y: {TYPE}, %s: f32) -> ({TYPE}, {TYPE}) {{
  %e = tensor.empty() : {TYPE} {before} {text}
  return %a, %b : {TYPE}, {TYPE}
}}""",
        ctx := new_context(),
    )
    make_pass("cse").apply(ctx, module)
    module.verify()
    return print_module(module, ctx)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("%x, %y", STRAIGHT, "%v = arith.mulf %p, %q : f32"), ("%y, %x", STRAIGHT, "%v = arith.mulf %p, %q : f32")),
        (("%x, %y", STRAIGHT, "%v = arith.mulf %p, %q : f32"), ("%x, %y", STRAIGHT, "%v = arith.mulf %q, %p : f32")),
        (
            ("%x, %y", STRAIGHT, "%v = arith.subf %p, %q : f32"),
            ("%x, %y", "j, i; j, i; j, i", "%v = arith.subf %p, %q : f32"),
        ),
        (
            ("%x, %y", STRAIGHT, "%w = arith.mulf %p, %s : f32  %v = arith.addf %w, %q : f32"),
            ("%y, %x", STRAIGHT, "%w = arith.mulf %s, %q : f32  %v = arith.addf %p, %w : f32"),
        ),
    ],
    ids=["inputs", "operands of what commutes", "loops", "a captured scalar"],
)
def test_one_form_stays(first: tuple[str, str, str], second: tuple[str, str, str]):
    found, other = (
        _merged(_generic("a", *forms[0]), _generic("b", *forms[1])) for forms in ((first, second), (second, first))
    )
    assert found == other
    assert found.count("linalg.generic") == 1


def test_what_inputs_are_made_of_decides():
    """Where texts are the same: an argument or a product of two, whatever stands first."""
    before = _generic("m", "%x, %x", STRAIGHT, "%v = arith.mulf %p, %q : f32")
    body = "%v = arith.addf %p, %q : f32"
    inputs = ("%x, %m", "%m, %x")
    found, other = (
        _merged(*[_generic(name, one, STRAIGHT, body) for name, one in zip("ab", order, strict=True)], before=before)
        for order in (inputs, inputs[::-1])
    )
    assert found == other


def test_a_body_that_reads_what_is_not_there_yet_stays_where_it_is():
    """It computes something that nobody yields from a scalar behind the first one."""
    scalar = "\n  %later = arith.addf %s, %s : f32"
    dead = "%d = arith.addf %p, %later : f32  %v = arith.mulf %p, %q : f32"
    plain = "%v = arith.mulf %p, %q : f32"
    found = {
        _merged(_generic("a", one, STRAIGHT, plain) + scalar, _generic("b", other, STRAIGHT, dead))
        for one, other in (("%x, %y", "%y, %x"), ("%y, %x", "%x, %y"))
    }
    assert all(text.count("linalg.generic") == 1 for text in found)
