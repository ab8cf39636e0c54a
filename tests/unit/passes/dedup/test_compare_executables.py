"""What is written down of code that looks alike: which is compared with which, what differs, and what sharing costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from fuseline.dispatch.body_constants import BodyConstant
from fuseline.errors import FuselineError
from fuseline.ir.context import ComparedCode, CompilerContext, new_context
from fuseline.ir.text import parse_module
from fuseline.passes.dedup.compare_executables import COMPARED, CompareExecutablesPass
from fuseline.targets.target import SharingPrice


@dataclass(frozen=True)
class Code:
    """`x * factor + term` over `size` elements, or another op in place of the product."""

    factor: float = 2.0
    term: float = 0.5
    size: int = 3
    op: str = "arith.mulf"
    called: bool = True


def _module(codes: Sequence[Code], ctx: CompilerContext) -> ModuleOp:
    arguments = ", ".join(f"%x{i}: tensor<{code.size}xf32>" for i, code in enumerate(codes))
    calls, executables = "", ""
    for i, code in enumerate(codes):
        type_ = f"tensor<{code.size}xf32>"
        if code.called:
            calls += f"%y{i} = flow.dispatch @e{i}::@e{i}(%x{i}) : ({type_}) -> {type_}\n"
        executables += f"""flow.executable private @e{i} {{ flow.executable.export public @e{i}
          builtin.module {{ func.func @e{i}(%a: {type_}) -> {type_} {{
            %e = tensor.empty() : {type_}
            %r = linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
                iterator_types = ["parallel"]}} ins(%a : {type_}) outs(%e : {type_}) {{
            ^bb0(%b: f32, %o: f32):
              %c = arith.constant {code.factor} : f32
              %d = arith.constant {code.term} : f32
              %p = {code.op} %b, %c : f32
              %v = arith.addf %p, %d : f32
              linalg.yield %v : f32
            }} -> {type_}
            func.return %r : {type_} }} }} }}\n"""
    return parse_module(f"func.func @main({arguments}) {{\n{calls}return\n}}\n{executables}", ctx)


def _compared(*codes: Code, level: str = "exact", dear: dict[float, float] | None = None) -> list[ComparedCode]:
    """What is on record after the pass; `dear`: what a launch loses by constants of these values, in ns."""
    ctx = new_context()
    ctx.compared.append(ComparedCode(None, None, "", "", 0.0))  # pyright: ignore[reportArgumentType]

    def price(entry: FuncOp, constant: BodyConstant) -> SharingPrice | None:
        value = constant.value.value.data  # pyright: ignore[reportAttributeAccessIssue]
        return SharingPrice(dear[value], f"{value} is dear") if dear and value in dear else None

    ctx.sharing_price = price
    module = _module(codes, ctx)
    before = module.clone()
    CompareExecutablesPass(level).apply(ctx, module)
    assert ctx.records.dedup == level and module.is_structurally_equivalent(before)
    return ctx.compared


def _ends(one: ComparedCode) -> tuple[str, str]:
    return one.first.executable, one.second.executable


@pytest.mark.parametrize(
    "codes", [[], [Code()], [Code(), Code(op="arith.divf")], [Code(), Code(called=False)]], ids=len
)
def test_code_like_no_other_is_not_compared(codes: list[Code]):
    assert _compared(*codes) == []


@pytest.mark.parametrize(
    ("level", "code"),
    [
        ("none", "below-level"),
        ("exact", "below-level"),
        ("constants", "too-many-operands"),
        ("shapes", "too-many-operands"),
    ],
)
def test_constants_keep_code_apart_below_their_level(level: str, code: str):
    (one,) = _compared(Code(), Code(factor=3.0), level=level)
    assert (_ends(one), one.code, one.ns) == (("e0", "e1"), code, 0.0)
    assert one.detail.startswith("arith.mulf has 2.0") and "3.0" in one.detail and "constants)" not in one.detail
    (one,) = _compared(Code(), Code(factor=3.0, term=0.25), level=level)
    assert one.code == code and one.detail.endswith("(2 constants)")


def test_equal_code_has_nothing_that_differs():
    (one,) = _compared(Code(), Code())
    assert (one.code, one.detail, one.ns) == ("below-level", "nothing", 0.0)


def test_a_constant_that_costs_time_decides_and_the_dearer_of_two_counts():
    (one,) = _compared(Code(), Code(factor=3.0), level="constants", dear={2.0: 5.0, 3.0: 7.0})
    assert (one.code, one.ns) == ("constant-decides-code", 7.0) and one.detail.endswith(": 3.0 is dear")
    (one,) = _compared(Code(), Code(factor=3.0, term=0.25), level="constants", dear={2.0: 5.0, 0.25: 1.5})
    assert one.ns == 6.5 and one.detail.endswith("(2 constants): 2.0 is dear")
    (one,) = _compared(Code(), Code(term=0.25), level="constants", dear={2.0: 5.0})
    assert (one.code, one.ns) == ("too-many-operands", 0.0)


def test_extents_are_told_first():
    (one,) = _compared(Code(), Code(size=4, factor=3.0), level="shapes", dear={3.0: 9.0})
    assert (one.code, one.detail, one.ns) == ("extents-differ", "argument 0 is tensor<3xf32>, tensor<4xf32>", 0.0)


def test_each_is_compared_with_the_nearest_before_it():
    """The same extents come first, then what costs least, then the first."""
    found = _compared(
        Code(), Code(size=4), Code(factor=3.0), Code(factor=3.0, size=4), Code(term=0.25), Code(factor=7.0, term=0.25),
        dear={2.0: 9.0, 7.0: 1.0, 0.5: 4.0}, level="constants",
    )  # fmt: skip
    assert [(_ends(one), one.code) for one in found] == [
        (("e0", "e1"), "extents-differ"),
        (("e0", "e2"), "constant-decides-code"),
        (("e1", "e3"), "constant-decides-code"),
        (("e0", "e4"), "constant-decides-code"),
        (("e2", "e5"), "constant-decides-code"),
    ]
    assert [one.ns for one in found] == [0.0, 9.0, 9.0, 4.0, 5.0]


def test_only_so_many_before_it_are_looked_at():
    far = [Code(factor=float(3 + i)) for i in range(COMPARED)]
    dear = {float(3 + i): 2.0 for i in range(COMPARED)}
    (*_, last) = _compared(Code(factor=1.0), *far, Code(factor=1.0), level="constants", dear=dear)
    assert _ends(last) == ("e1", f"e{COMPARED + 1}")
    (*_, last) = _compared(Code(factor=1.0), *far[1:], Code(factor=1.0), level="constants", dear=dear)
    assert (_ends(last), last.detail) == (("e0", f"e{COMPARED}"), "nothing")


def test_an_unknown_level_is_refused():
    with pytest.raises(FuselineError) as caught:
        _compared(Code(), level="all")
    assert (caught.value.code, caught.value.node) == ("E0304", "compare-executables")
