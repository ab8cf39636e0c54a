"""How many elements of a row come before each, of integers, with equals among them."""

from __future__ import annotations

import pytest

from fuseline.targets.cpu.families.sequential.order import OrderFamily
from fuseline.targets.cpu.isa import ISA_NAMES, machine
from fuseline.targets.target import Refusal

from .generics import fill, function, generic, tensor
from .texts import build, check, parse


def rank(
    shape: tuple[int | str, ...], axis: int, element: str = "i32", *, less: str = "slt", equal: str = "sle",
    former: str = "slt", start: str = "0",
    other: bool = False, bound: str = "", limit: int | None = None,
) -> str:  # fmt: skip
    """The root alone: counted are smaller ones, and equal ones that are former."""
    loops = len(shape)
    t, out = tensor(shape, element), tensor(shape, "i64")
    here = ", ".join(f"d{i}" for i in range(loops))
    read = ", ".join(f"d{loops}" if i == axis else f"d{i}" for i in range(loops))
    body = f"""%w = linalg.index {axis} : index
%r = linalg.index {loops} : index
%former = arith.cmpi {former}, %r, %w : index
%le = arith.cmpi {equal}, %i0, %i1 : {element}
%lt = arith.cmpi {less}, %i0, %i1 : {element}
%first = arith.select %former, %le, %lt : i1
%one = arith.extui %first : i1 to i64
%{"t" if limit is None else "s"} = arith.addi %o0, %one : i64"""
    if limit is not None:
        body += f"\n%most = arith.constant {limit} : i64\n%t = arith.minsi %s, %most : i64"
    second = "%z" if other else "%x"
    op = generic(
        "%y", [("%x", t), (second, t)], [("%f", out)], [read, here, here], "p" * loops + "r", body, [("%t", "i64")]
    )
    names = sorted({s for s in shape if isinstance(s, str)})
    arguments = [("x", shape, element), *([("z", shape, element)] if other else [])]
    text = function(arguments, names, fill("f", start, shape, "i64") + "\n" + op, [("%y", out)])
    return text.replace('fuseline.name = "n"', f'fuseline.name = "n", fuseline.bounds = "{bound}"') if bound else text


@pytest.mark.parametrize("element", ["i64", "i32", "i8"])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [((5, 7, 19), 0), ((5, 7, 19), 1), ((5, 7, 19), 2), ((133,), 0), ((3, 1, 2), 2), ((6, 64), 1), ((4, 1), 1)],
)
def test_along_any_axis(shape: tuple[int, ...], axis: int, element: str) -> None:
    check(rank(shape, axis, element), family="order")


@pytest.mark.parametrize("limit", [1, 2, 7, 13, 30, 64, 90])
@pytest.mark.parametrize(("shape", "axis"), [((2, 71), 1), ((69, 2), 0)])
def test_counts_up_to_a_limit(shape: tuple[int, ...], axis: int, limit: int) -> None:
    check(rank(shape, axis, "i8" if limit % 2 else "i64", limit=limit), family="order")


@pytest.mark.parametrize("size", [1, 2, 9, 40])
@pytest.mark.parametrize("limit", [3, 70])
def test_limits_beyond_a_row(size: int, limit: int) -> None:
    check(rank((3, "n"), 1, bound="1..90", limit=limit), sizes={"n": size}, family="order")


@pytest.mark.parametrize("size", [1, 2, 9, 40])
def test_sizes_with_a_bound(size: int) -> None:
    check(rank((3, "n"), 1, bound="1..40"), sizes={"n": size}, family="order")


@pytest.mark.parametrize("isa", ISA_NAMES)
def test_every_isa(isa: str) -> None:
    assert build(parse(rank((5, 21), 1)), machine(isa)).family.name == "order"


REFUSED = {
    "unsigned order": (rank((4, 9), 1, less="ult", equal="ule"), "not-a-rank"),
    "the latter of equals": (rank((4, 9), 1, former="sgt"), "not-a-rank"),
    "equals both before each other": (rank((4, 9), 1, less="sle"), "not-a-rank"),
    "two tensors": (rank((4, 9), 1, other=True), "not-a-rank"),
    "a count from one": (rank((4, 9), 1, start="1"), "not-a-rank"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str) -> None:
    text, code = REFUSED[name]
    found = OrderFamily().accepts(parse(text), machine("avx2"))
    assert isinstance(found, Refusal) and found.code == code
