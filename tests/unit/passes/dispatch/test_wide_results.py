"""Results of 16 bits made of 8: which dispatches have them, and what keeps them as they are."""

from __future__ import annotations

from dataclasses import replace

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.dispatch.fused_loops import LOOPS_ATTRIBUTE, require_match
from fuseline.dispatch.loops_attribute import from_attribute
from fuseline.dispatch.region_names import member_ids, region_name
from fuseline.ir.context import new_context
from fuseline.ir.costs import MachineCosts
from fuseline.ir.flow import DispatchRegionOp
from fuseline.ir.target_description import TargetDescription
from fuseline.ir.text import parse_module
from fuseline.passes.dispatch.narrow_results import NarrowResultsPass
from fuseline.passes.dispatch.wide_results import kept_wide, wide_results
from fuseline.targets.target import Refusal

PLAIN = "affine_map<(i, j) -> (i, j)>"
WIDEN = "%n = arith.extsi %a : i8 to i16"
ROWS, COLUMNS = 40, 30
FREE = replace(MachineCosts(), packed_bytes=0, packing_ns=0.0)


def _pointwise(name: str, source: str, body: str, *, at: str = "i8", to: str = "i16") -> str:
    return f"""%{name}_e = tensor.empty() : tensor<{ROWS}x{COLUMNS}x{to}>
      %{name} = linalg.generic {{indexing_maps = [{PLAIN}, {PLAIN}], iterator_types = ["parallel", "parallel"]}}
          ins(%{source} : tensor<{ROWS}x{COLUMNS}x{at}>) outs(%{name}_e : tensor<{ROWS}x{COLUMNS}x{to}>) {{
      ^bb0(%a: {at}, %o: {to}):
        {body}
        linalg.yield %n : {to}
      }} -> tensor<{ROWS}x{COLUMNS}x{to}>
"""


def _region(
    name: str, body: str, results: str, *, loops: str = "", types: str = f"tensor<{ROWS}x{COLUMNS}xi16>"
) -> str:
    """A dispatch of one grid, whose last member is called as its result is."""
    said = loops or f'{{grids = [["{ROWS}", "{COLUMNS}"]], members = [array<i64: 0, 1>]}}'
    returned = ", ".join([types] * (results.count(",") + 1))
    return f"""%{name}{":2" if "," in results else ""} = flow.dispatch.region -> ({returned})
        attributes {{fuseline.members = ["{name}"], fuseline.loops = {said}}} {{
      {body}
      flow.return {results} : {returned}
    }}
"""


NARROW = _pointwise("q", "x", "%n = arith.fptosi %a : f32 to i8", at="f32", to="i8")
DOUBLED = _pointwise("s", "w", "%n = arith.addi %a, %a : i16", at="i16")
MADE = _region("made", NARROW + _pointwise("w", "q", WIDEN) + DOUBLED, "%w, %s")
ALONE = _region("made", NARROW + _pointwise("w", "q", WIDEN), "%w")


def _reader(source: str = "made#0", name: str = "read", loops: str = "") -> str:
    body = _pointwise("d", source, "%n = arith.addi %a, %a : i16", at="i16")
    return _region(name, body, "%d", loops=loops)


def _product(source: str = "made#0", name: str = "product", kind: str = "once") -> str:
    """A product that reads each element once, or in several windows, or from both sides."""
    wide = f"tensor<{ROWS}x{COLUMNS}xi16>"
    left, right, other, columns = {
        "once": ("(i, k)", "(k, j)", f"tensor<{COLUMNS}x8xi16>", 8),
        "windows": ("(i + k, j)", "(k, j)", f"tensor<3x{COLUMNS}xi16>", COLUMNS),
        "sides": ("(i, k)", "(j, k)", wide, ROWS),
    }[kind]
    out = f"tensor<{ROWS - 2 if kind == 'windows' else ROWS}x{columns}xi32>"
    body = f"""%zero = arith.constant 0 : i32
      %b = tensor.empty() : {other}
      %pe = tensor.empty() : {out}
      %z = linalg.fill ins(%zero : i32) outs(%pe : {out}) -> {out}
      %p = linalg.generic {{indexing_maps = [affine_map<(i, j, k) -> {left}>, affine_map<(i, j, k) -> {right}>,
          affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]}}
          ins(%{source}, %{source if kind == "sides" else "b"} : {wide}, {other}) outs(%z : {out}) {{
      ^bb0(%l: i16, %r: i16, %o: i32):
        %wl = arith.extsi %l : i16 to i32
        %wr = arith.extsi %r : i16 to i32
        %m = arith.muli %wl, %wr : i32
        %t = arith.addi %o, %m : i32
        linalg.yield %t : i32
      }} -> {out}
"""
    return _region(name, body, "%p", types=out)


def _module(*regions: str) -> ModuleOp:
    text = f"func.func @main(%x: tensor<{ROWS}x{COLUMNS}xf32>) {{\n{''.join(regions)}\nreturn\n}}"
    return parse_module(text, new_context())


def _found(module: ModuleOp) -> list[tuple[str, int]]:
    (function,) = module.ops
    assert isinstance(function, FuncOp)
    return [(region_name(one.region), one.number) for one in wide_results(function.body.block)]


def _refused(module: ModuleOp, costs: MachineCosts = FREE, threads: int = 2) -> Refusal | None:
    """What keeps the first wide result."""
    (function,) = module.ops
    assert isinstance(function, FuncOp)
    one = next(wide_results(function.body.block))
    assert one.result is one.region.results[one.number]
    return kept_wide(one, ShapeAnalysis({}), TargetDescription("null", threads=threads, costs=costs))


def _kept(module: ModuleOp, costs: MachineCosts = FREE, threads: int = 2) -> tuple[str, str]:
    """The code and the words of what keeps the first wide result; nothing where nothing does."""
    refused = _refused(module, costs, threads)
    return ("", "") if refused is None else (refused.code, refused.detail)


ROUNDED = _pointwise("q", "x", "%n = arith.fptosi %a : f32 to i16", at="f32")


@pytest.mark.parametrize(
    ("region", "found"),
    [
        (MADE, [("made", 0)]),
        (MADE.replace("return %w, %s", "return %s, %w"), [("made", 1)]),
        (ALONE, [("made", 0)]),
        (_region("made", _pointwise("w", "given", WIDEN), "%w"), []),
        (_region("made", ROUNDED, "%q"), []),
        (_region("made", NARROW, "%q", types=f"tensor<{ROWS}x{COLUMNS}xi8>"), []),
    ],
    ids=["first", "second", "alone", "of an argument", "of no bytes", "narrow"],
)
def test_results_that_a_dispatch_widens_itself(region: str, found: list[tuple[str, int]]):
    given = f"%given = tensor.empty() : tensor<{ROWS}x{COLUMNS}xi8>\n"
    assert _found(_module(given, region)) == found


def test_regions_come_in_order():
    second = MADE.replace("%made", "%again").replace('"made"', '"again"')
    assert _found(_module(MADE, _reader(), second)) == [("made", 0), ("again", 0)]


@pytest.mark.parametrize(
    ("regions", "code"),
    [
        ([MADE, _reader()], ""),
        ([MADE, _product()], ""),
        ([ALONE, _reader("made")], "not-needed-wide"),
        ([ALONE, _product("made"), _product("made", name="other")], "not-needed-wide"),
        ([ALONE, _reader("made"), _product("made")], ""),
        ([MADE, _product(kind="windows")], "read-again"),
        ([MADE, _product(kind="sides")], "read-again"),
        ([MADE, _reader(), _product(kind="sides")], "read-again"),
    ],
)
def test_readers_widen_what_the_dispatch_needs_wide_itself(regions: list[str], code: str):
    assert _kept(_module(*regions))[0] == code


def _with_unknown_rows(text: str) -> str:
    """The regions with a first size that only the run tells, `%rows`."""
    known, unknown = f"tensor<{ROWS}x{COLUMNS}x", f"tensor<?x{COLUMNS}x"
    text = text.replace(f"tensor.empty() : {known}", f"tensor.empty(%rows) : {known}")
    lines = [line.replace("i16>", "i16>{%rows}") if "region ->" in line else line for line in text.splitlines()]
    return "\n".join(lines).replace(known, unknown)


def test_a_size_of_the_run_keeps_it_wide():
    image = f"tensor<?x{COLUMNS}xf32>"
    size = f"%zero = arith.constant 0 : index\n%rows = tensor.dim %x, %zero : {image}\n"
    text = f"func.func @main(%x: {image}) {{\n{size}{_with_unknown_rows(MADE + _reader())}\nreturn\n}}"
    assert _kept(parse_module(text, new_context()))[0] == "symbolic"


def test_so_does_a_reader_outside_of_dispatches():
    outside = f"%u = tensor.cast %made#0 : tensor<{ROWS}x{COLUMNS}xi16> to tensor<?x{COLUMNS}xi16>\n"
    assert _kept(_module(MADE, _reader(), outside))[0] == "read-outside"


@pytest.mark.parametrize("loops", ['{grids = [["40", "30"]], arms = [0]}', "{along = []}", "{grids = [], online = []}"])
def test_so_do_loops_that_no_member_can_be_put_before(loops: str):
    code, detail = _kept(_module(MADE, _reader(loops=loops)))
    assert code == "loops" and detail.startswith("read ")


def test_what_it_saves_is_weighed():
    elements = ROWS * COLUMNS
    product = _module(MADE, _product())
    costs = replace(FREE, packed_bytes=elements // 2)
    assert _kept(product, costs) == ("too-small", f"it would save {elements} bytes, packing may take {elements}")
    assert _kept(product, costs, threads=1) == ("", "")
    dear = replace(FREE, packing_ns=1.0, stored_bytes_per_ns=1.0)
    assert _kept(product, dear) == ("", "")
    code, detail = _kept(product, replace(dear, packing_ns=2.5))
    assert (code, detail) == ("too-dear", f"packing takes {elements * 2.5:.0f} ns, what is not moved {2 * elements} ns")
    assert _kept(_module(MADE, _reader()), replace(dear, packing_ns=99.0)) == ("", "")


def test_a_refusal_by_its_price_has_the_numbers():
    elements = ROWS * COLUMNS
    refused = _refused(_module(MADE, _product()), replace(FREE, packing_ns=2.5, stored_bytes_per_ns=1.0))
    assert refused is not None
    assert refused.numbers == {"packing_ns": 2.5 * elements, "saved_ns": 2.0 * elements}


def test_a_widening_that_nothing_in_its_dispatch_reads_is_gone():
    """Two dispatches read what a third only widens for them: each widens it itself."""
    both = f'{{grids = [["{ROWS}", "{COLUMNS}"]], members = [array<i64: 0, 1>, array<i64: 0, 1>]}}'
    made = _region("made", NARROW + _pointwise("w", "q", WIDEN), "%w", loops=both).replace('["made"]', '["q", "made"]')
    module, ctx = _module(made, _reader("made"), _product("made")), new_context()
    ctx.target = TargetDescription("null", costs=FREE)
    NarrowResultsPass().apply(ctx, module)
    module.verify()
    regions = [op for op in module.walk() if isinstance(op, DispatchRegionOp)]
    assert [member_ids(region) for region in regions] == [("q",), ("made-widened", "read"), ("made-widened", "product")]
    assert [str(result.type) for result in regions[0].results] == [f"tensor<{ROWS}x{COLUMNS}xi8>"]
    loops = from_attribute(regions[0].attributes[LOOPS_ATTRIBUTE], ctx.symbols, "made")
    require_match(loops, regions[0].body.block, ShapeAnalysis(ctx.symbols))
