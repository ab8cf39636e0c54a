"""Which generics have one key, however they are written."""

from __future__ import annotations

from collections.abc import Hashable

import pytest
from xdsl.dialects.linalg.ops import GenericOp

from fuseline.analysis.structural_key import AttributeNumbers
from fuseline.ir.context import new_context
from fuseline.ir.text import parse_module
from fuseline.passes.cleanup.generic_key import GenericKeys

ARGUMENTS = (
    "%x: tensor<4x4xf32>, %y: tensor<4x4xf32>, %d: tensor<4x?xf32>, %d2: tensor<4x?xf32>, %v: tensor<4xf32>, "
    "%v2: tensor<4xf32>, %f: f32, %g: f32, %f0: tensor<f32>"
)


def _generic(
    maps: str, kinds: str, ins: str, out: str, body: str, types: str = "", result: str = "tensor<4x4xf32>"
) -> str:
    """A generic over `len(kinds)` loops `i, j, k`; its body computes `%r` from the elements `%a0, %a1, ..` and `%o`."""
    loops = ", ".join("ijk"[: len(kinds)])
    written = ", ".join(f"affine_map<({loops}) -> ({one})>" for one in maps.split("; "))
    names = ins.split()
    read = types or ", ".join("tensor<4x4xf32>" for _ in names)
    iterators = ", ".join('"parallel"' if kind == "p" else '"reduction"' for kind in kinds)
    elements = "".join(f"%a{i}: f32, " for i in range(len(names)))
    return (
        f"%RESULT = linalg.generic {{indexing_maps = [{written}], iterator_types = [{iterators}]}} "
        f"ins({', '.join(names)} : {read}) outs({out} : {result}) "
        f"{{\n^bb0({elements}%o: f32):\n {body}\n linalg.yield %r : f32 }} -> {result}\n"
    )


def _keys(*generics: str) -> tuple[list[Hashable], list[Hashable]]:
    """What is in common at a glance, and all of it."""
    text = "".join(one.replace("RESULT", f"made{i}") for i, one in enumerate(generics))
    module = parse_module(f"func.func @main({ARGUMENTS}) {{\n{text} return }}", new_context())
    ops = [op for op in module.walk() if isinstance(op, GenericOp)]
    keys = GenericKeys(AttributeNumbers())
    assert len(ops) == len(generics)
    return [keys.outside(op) for op in ops], [keys.key(op) for op in ops]


def _one_value(first: str, second: str) -> bool:
    """Whether two generics have one key; if so, they are alike at a glance."""
    outside, (one, other) = _keys(first, second)
    assert one is not None and other is not None
    assert one != other or outside[0] == outside[1]
    return one == other


def _pair(body: str, ins: str = "%x %y", maps: str = "i, j; i, j; i, j", out: str = "%x") -> str:
    return _generic(maps, "pp", ins, out, body)


ADD = "%r = arith.addf %a0, %a1 : f32"
SUB = "%r = arith.subf %a0, %a1 : f32"


def test_operands_stand_in_any_order():
    assert _one_value(_pair(SUB), _pair("%r = arith.subf %a1, %a0 : f32", "%y %x"))
    assert not _one_value(_pair(SUB), _pair(SUB, "%y %x"))


def test_loops_stand_in_any_order():
    body = "%r = math.exp %a0 : f32"
    turned = _generic("i, j; j, i", "pp", "%x", "%x", body)
    assert _one_value(turned, _generic("j, i; i, j", "pp", "%x", "%x", body))
    assert not _one_value(turned, _generic("i, j; i, j", "pp", "%x", "%x", body))


def test_summed_loops_are_known_by_where_they_read():
    body = "%m = arith.mulf %a0, %a1 : f32\n %r = arith.addf %o, %m : f32"
    product = _generic("i, k; k, j; i, j", "ppr", "%x %y", "%x", body)
    assert _one_value(product, _generic("j, i; i, k; j, k", "rpp", "%x %y", "%x", body))
    assert not _one_value(product, _generic("k, i; k, j; i, j", "ppr", "%x %y", "%x", body))
    assert not _one_value(product, _generic("i, k; k, j; i, j", "ppr", "%x %y", "%y", body))


def test_loops_of_another_kind_are_another_value():
    body = "%r = arith.maximumf %a0, %o : f32"
    by_row = [_generic("i, j; i", kinds, "%x", "%v", body, result="tensor<4xf32>") for kinds in ("pr", "pp")]
    assert not _one_value(*by_row) and _one_value(by_row[0], by_row[0])


@pytest.mark.parametrize(
    ("first", "second", "equal"),
    [
        ("%r = arith.maximumf %a0, %a1 : f32", "%r = arith.maximumf %a1, %a0 : f32", True),
        (SUB, "%r = arith.subf %a1, %a0 : f32", False),
        (ADD, "%r = arith.addf %a1, %a0 : f32", True),
        (SUB, "%unused = math.exp %a0 : f32\n %r = arith.subf %a0, %a1 : f32", True),
        ("%r = arith.mulf %a0, %f : f32", "%r = arith.mulf %a0, %g : f32", False),
        ("%r = arith.mulf %a0, %f : f32", "%r = arith.mulf %a0, %f : f32", True),
        ("%r = arith.subf %f, %a1 : f32", "%r = arith.subf %a1, %f : f32", False),
        ("%r = math.exp %a0 : f32", "%r = math.tanh %a0 : f32", False),
        ("%r = math.exp %a0 : f32", "%r = math.exp %a1 : f32", False),
        ("%r = math.exp %a0 : f32", "%r = math.exp %o : f32", False),
        (SUB, "%r = arith.subf %a0, %a1 fastmath<nnan> : f32", False),
    ],
)
def test_bodies_are_compared_by_what_they_compute(first: str, second: str, equal: bool):
    assert _one_value(_pair(first), _pair(second)) == equal


COUNTED = "%n = linalg.index {0} : index\n %c = arith.index_cast %n : index to i32\n %r = arith.sitofp %c : i32 to f32"


def test_coordinates_count_as_the_loops_of_the_result():
    rows, columns = COUNTED.format(0), COUNTED.format(1)
    assert _one_value(_generic("i, j; i, j", "pp", "%x", "%x", rows), _generic("j, i; j, i", "pp", "%x", "%x", columns))
    assert not _one_value(
        _generic("i, j; i, j", "pp", "%x", "%x", rows), _generic("i, j; i, j", "pp", "%x", "%x", columns)
    )


def test_what_a_result_starts_from_counts_where_it_is_read_or_says_its_size():
    body, read = "%r = math.exp %a0 : f32", "%r = arith.addf %o, %a0 : f32"
    static = [_generic("i, j; i, j", "pp", "%x", out, body) for out in ("%x", "%y")]
    assert _one_value(*static)
    assert not _one_value(*[_generic("i, j; i, j", "pp", "%x", out, read) for out in ("%x", "%y")])
    sized = [
        _generic("i, j; i, j", "pp", "%d", out, body, "tensor<4x?xf32>", "tensor<4x?xf32>") for out in ("%d", "%d2")
    ]
    assert not _one_value(*sized)


def test_operands_that_nothing_reads_count_where_they_say_how_far_loops_run():
    body = "%r = arith.addf %o, %f : f32"
    by_row = [_generic(f"{at}; i", "pr", "%x", "%v", body, result="tensor<4xf32>") for at in ("i, j", "j, i")]
    assert not _one_value(*by_row)
    whole = [_generic(f"{at}; i, j", "pp", "%x", "%x", body) for at in ("i, j", "j, i")]
    assert _one_value(*whole)


def test_at_a_glance_inputs_count_without_their_order():
    outside, _ = _keys(_pair(SUB), _pair(SUB, "%y %x"), _pair(SUB, "%x %x"))
    assert outside[0] == outside[1] != outside[2]


EXTRACTED = "%n = linalg.index 0 : index\n %r = tensor.extract %v[%n] : tensor<4xf32>"
BRANCH = """%c = arith.cmpf ogt, %a0, %a1 : f32
 %r = scf.if %c -> (f32) { scf.yield %a0 : f32 } else { scf.yield %a1 : f32 }"""


@pytest.mark.parametrize("body", [EXTRACTED, BRANCH])
def test_bodies_that_do_more_than_compute_have_no_key(body: str):
    outside, keys = _keys(_pair(body), _pair(ADD))
    assert keys[0] is None and keys[1] is not None and outside[0] == outside[1]


def _folded(body: str, first: str, last: str) -> str:
    """Along both loops of a matrix that is read by rows or by columns."""
    return _generic(f"{first}, {last}; ", "rr", "%x", "%f0", body, result="tensor<f32>")


@pytest.mark.parametrize(
    ("body", "alike"),
    [
        ("%r = arith.addf %o, %a0 : f32", True),
        ("%r = arith.maximumf %a0, %o : f32", True),
        ("%h = arith.constant 0.5 : f32 %s = arith.mulf %o, %h : f32 %r = arith.addf %s, %a0 : f32", False),
        ("%c = arith.cmpf ogt, %a0, %o : f32 %r = arith.select %c, %a0, %o : f32", False),
    ],
)
def test_the_order_of_a_fold_is_part_of_it_where_it_matters(body: str, alike: bool) -> None:
    assert _one_value(_folded(body, "i", "j"), _folded(body, "i", "j"))
    assert _one_value(_folded(body, "i", "j"), _folded(body, "j", "i")) == alike
