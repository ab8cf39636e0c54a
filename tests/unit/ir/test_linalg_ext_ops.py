"""Ops of `iree_linalg_ext` as text: what each holds, and what does not fit."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import TensorType, f32
from xdsl.utils.exceptions import VerifyException

from fuseline.ir.linalg_ext.attention import AttentionOp, OnlineAttentionOp
from fuseline.ir.linalg_ext.base import ExtOp, check_sizes, without
from fuseline.ir.linalg_ext.custom import CustomOp, IteratorTypeAttr
from fuseline.ir.linalg_ext.indexed import GatherOp, MapLoadOp, MapStoreOp, ScatterOp
from fuseline.ir.linalg_ext.ordering import ArgCompareOp, FftOp, ScanOp, SortOp, TopkOp, TopkV2Op

from .one_op import op_of, refused

ARGUMENTS = """%x: tensor<3x7xf32>, %n: tensor<3x7xi32>, %v: tensor<3xf32>, %m: tensor<3xi32>, %k: tensor<3x2xf32>,
  %l: tensor<3x2xi32>, %b: index, %w: tensor<6x4xf32>, %at: tensor<3x1xi32>, %one: tensor<3xi32>, %u: tensor<3x4xf32>,
  %on: tensor<3xi1>, %re: tensor<2x8xf32>, %c: tensor<4xf32>, %two: tensor<3x2xi32>, %pts: tensor<3xf32>"""
LESS = "{\n^bb0(%p: f32, %q: f32):\n %r0 = arith.cmpf olt, %p, %q : f32\n iree_linalg_ext.yield %r0 : i1\n}"
SUM = "{\n^bb0(%p: f32, %q: f32):\n %r0 = arith.addf %p, %q : f32\n iree_linalg_ext.yield %r0 : f32\n}"
BOTH = (
    "{\n^bb0(%p: f32, %q: f32, %s: i32, %t: i32):\n %r0 = arith.cmpf "
    "olt, %p, %q : f32\n iree_linalg_ext.yield %r0 : i1\n}"
)

SORT = (
    f"%r:2 = iree_linalg_ext.sort dimension(1) outs(%x, %n : tensor<3x7xf32>, "
    f"tensor<3x7xi32>) {BOTH} -> tensor<3x7xf32>, tensor<3x7xi32>"
)
TOPK = (
    f"%r:2 = iree_linalg_ext.topk dimension(1) ins(%x, %n : tensor<3x7xf32>, tensor<3x7xi32>) "
    f"outs(%k, %l : tensor<3x2xf32>, tensor<3x2xi32>) {LESS} -> tensor<3x2xf32>, tensor<3x2xi32>"
)
TOPK_V2 = (
    f"%r = iree_linalg_ext.topk_v2 dimension(1) is_sorted ins(%x : "
    f"tensor<3x7xf32>) outs(%k : tensor<3x2xf32>) {LESS} -> tensor<3x2xf32>"
)
SCAN = (
    f"%r:2 = iree_linalg_ext.scan dimension(1) inclusive(true) ins(%x : tensor<3x7xf32>) "
    f"outs(%x, %v : tensor<3x7xf32>, tensor<3xf32>) {SUM} -> tensor<3x7xf32>, tensor<3xf32>"
)
BEST = (
    f"%r:2 = iree_linalg_ext.arg_compare dimension(1) ins(%x : tensor<3x7xf32>) outs(%v, %m : "
    f"tensor<3xf32>, tensor<3xi32>) index_base(%b : index) {LESS} -> tensor<3xf32>, tensor<3xi32>"
)
FFT = (
    "%r:2 = iree_linalg_ext.fft ins(%b, %c, %c : index, tensor<4xf32>, tensor<4xf32>) "
    "outs(%re, %re : tensor<2x8xf32>, tensor<2x8xf32>) : tensor<2x8xf32>, tensor<2x8xf32>"
)
SCATTER = (
    f"%r = iree_linalg_ext.scatter dimension_map = [0] unique_indices(false) ins(%u, %at : "
    f"tensor<3x4xf32>, tensor<3x1xi32>) outs(%w : tensor<6x4xf32>) {SUM} -> tensor<6x4xf32>"
)
GATHER = (
    "%r = iree_linalg_ext.gather dimension_map = [0] ins(%w, %one, %on : tensor<6x4xf32>, "
    "tensor<3xi32>, tensor<3xi1>) outs(%u : tensor<3x4xf32>) -> tensor<3x4xf32>"
)
PLACES = "{\n^bb0(%i: index, %j: index):\n iree_linalg_ext.yield %j, %i, WHAT\n}"
LOAD = (
    f"%z = arith.constant 0.0 : f32\n%r = iree_linalg_ext.map_load %w into %u "
    f"{PLACES.replace('WHAT', '%z : index, index, f32')} : tensor<6x4xf32> into tensor<3x4xf32> -> tensor<3x4xf32>"
)
STORE = (
    f"%z = arith.constant true\n%r = iree_linalg_ext.map_store %u into %w "
    f"{PLACES.replace('WHAT', '%z : index, index, i1')} : tensor<3x4xf32> into tensor<6x4xf32> -> tensor<6x4xf32>"
)


@pytest.mark.parametrize(
    ("kind", "text", "counts"),
    [
        (SortOp, SORT, (0, 2, 0)),
        (TopkOp, TOPK, (2, 2, 0)),
        (TopkV2Op, TOPK_V2, (1, 1, 0)),
        (ScanOp, SCAN, (1, 2, 0)),
        (ArgCompareOp, BEST, (1, 2, 1)),
        (FftOp, FFT, (3, 2, 0)),
        (ScatterOp, SCATTER, (2, 1, 0)),
        (GatherOp, GATHER, (3, 1, 0)),
    ],
)
def test_each_op_reads_back(kind: type[ExtOp], text: str, counts: tuple[int, int, int]):
    op = op_of(kind, text, ARGUMENTS)
    assert (len(op.inputs), len(op.outputs), len(op.base)) == counts
    assert [value.type for value in op.outputs] == list(op.res.types)
    assert bool(op.regions_) == ("{" in text)
    kept = op_of(kind, text.replace(f"{kind.name} ", f"{kind.name} {{kept}} "), ARGUMENTS)
    assert "kept" in kept.attributes


def test_words_have_values():
    scan = op_of(ScanOp, SCAN, ARGUMENTS)
    assert scan.number("dimension") == 1 and scan.number("inclusive") == 1
    assert op_of(ScanOp, SCAN.replace("(true)", "(false)"), ARGUMENTS).number("inclusive") == 0
    assert op_of(ScatterOp, SCATTER, ARGUMENTS).numbers("dimension_map") == (0,)
    assert "is_sorted" in op_of(TopkV2Op, TOPK_V2, ARGUMENTS).attributes
    assert "is_sorted" not in op_of(TopkV2Op, TOPK_V2.replace("is_sorted ", ""), ARGUMENTS).attributes
    assert scan.block.args[0].type == f32


def test_words_come_in_any_order():
    turned = SCAN.replace("dimension(1) inclusive(true)", "inclusive(true) dimension(1)")
    assert op_of(ScanOp, turned, ARGUMENTS).attributes == op_of(ScanOp, SCAN, ARGUMENTS).attributes


def test_places_of_slices():
    scatter, gather = op_of(ScatterOp, SCATTER, ARGUMENTS), op_of(GatherOp, GATHER, ARGUMENTS)
    assert (scatter.whole.type, scatter.slices.type) == (TensorType(f32, [6, 4]), TensorType(f32, [3, 4]))
    assert (gather.whole.type, gather.slices.type) == (scatter.whole.type, scatter.slices.type)
    assert (scatter.depth, scatter.batch, gather.depth, gather.batch) == (1, 1, 1, 1)
    both = op_of(
        ScatterOp,
        SCATTER.replace("[0]", "[1, 0]").replace(
            "%u, %at : tensor<3x4xf32>, tensor<3x1xi32>", "%pts, %two : tensor<3xf32>, tensor<3x2xi32>"
        ),
        ARGUMENTS,
    )
    assert (both.depth, both.batch) == (2, 1)


@pytest.mark.parametrize(("kind", "text"), [(MapLoadOp, LOAD), (MapStoreOp, STORE)])
def test_mapped_ops_read_back(kind: type[MapLoadOp] | type[MapStoreOp], text: str):
    op = op_of(kind, text, ARGUMENTS)
    taken, yielded = op.from_sizes()
    assert taken.type == TensorType(f32, [3, 4]) and yielded.type == TensorType(f32, [6, 4])
    assert op.last_type() == op.body.block.last_op.operands[-1].type  # pyright: ignore[reportOptionalMemberAccess]


@pytest.mark.parametrize(
    ("text", "change", "says"),
    [
        (SORT, ("dimension(1)", ""), "expected dimension"),
        (SORT, ("dimension(1)", "dimension(2)"), "dimension 2 of a tensor of rank 2"),
        (SORT, ("dimension(1)", "dimension(-1)"), "dimension -1 of a tensor of rank 2"),
        (
            SORT,
            ("outs(%x, %n : tensor<3x7xf32>, tensor<3x7xi32>)", "outs(%x, %l : tensor<3x7xf32>, tensor<3x2xi32>)"),
            "a result has another type than its output",
        ),
        (
            SORT,
            (
                SORT[SORT.index("outs") :],
                f"outs(%x, %l : tensor<3x7xf32>, tensor<3x2xi32>) {BOTH} -> tensor<3x7xf32>, tensor<3x2xi32>",
            ),
            "what is sorted together",
        ),
        (SORT, ("outs(%x", "ins(%x : tensor<3x7xf32>) outs(%x"), "1 inputs, expected 0"),
        (SORT, (BOTH, LESS), "the body takes (f32, f32, i32, i32)"),
        (SORT, ("yield %r0 : i1", "yield %p : f32"), "the body yields (i1)"),
        (SORT, (BOTH, ""), "expected a body"),
        (TOPK, ("%k, %l : tensor<3x2xf32>, tensor<3x2xi32>", "%k : tensor<3x2xf32>"), "1 outputs, expected 2"),
        (TOPK, ("dimension(1)", "dimension(0)"), "beside the dimension"),
        (TOPK_V2, ("%x : tensor<3x7xf32>", "%x, %n : tensor<3x7xf32>, tensor<3x7xi32>"), "a result for the indices"),
        (
            TOPK_V2,
            (
                "%k : tensor<3x2xf32>) " + LESS + " -> tensor<3x2xf32>",
                "%l : tensor<3x2xi32>) " + LESS + " -> tensor<3x2xi32>",
            ),
            "expected values of one type",
        ),
        (SCAN, ("inclusive(true)", ""), "expected inclusive"),
        (
            SCAN,
            (
                "%x, %v : tensor<3x7xf32>, tensor<3xf32>) " + SUM + " -> tensor<3x7xf32>, tensor<3xf32>",
                "%k, %v : tensor<3x2xf32>, tensor<3xf32>) " + SUM + " -> tensor<3x2xf32>, tensor<3xf32>",
            ),
            "input and output",
        ),
        (SCAN, ("dimension(1)", "dimension(0)"), "input and accumulator"),
        (
            SCAN,
            (
                "%x, %v : tensor<3x7xf32>, tensor<3xf32>) " + SUM + " -> tensor<3x7xf32>, tensor<3xf32>",
                "%x, %m : tensor<3x7xf32>, tensor<3xi32>) " + SUM + " -> tensor<3x7xf32>, tensor<3xi32>",
            ),
            "one element type",
        ),
        (BEST, ("dimension(1)", "dimension(0)"), "input and output"),
        (BEST, ("ins(%x : tensor<3x7xf32>)", "ins(%x, %l : tensor<3x7xf32>, tensor<3x2xi32>)"), "values and indices"),
        (BEST, ("ins(%x : tensor<3x7xf32>)", "ins(%x, %x : tensor<3x7xf32>, tensor<3x7xf32>)"), "other element types"),
        (
            FFT,
            ("%b, %c, %c : index, tensor<4xf32>, tensor<4xf32>", "%b, %c : index, tensor<4xf32>"),
            "two vectors of coefficients",
        ),
        (
            FFT,
            ("%b, %c, %c : index, tensor<4xf32>, tensor<4xf32>", "%b, %c, %x : index, tensor<4xf32>, tensor<3x7xf32>"),
            "two vectors",
        ),
        (SCATTER, ("[0]", "[1]"), "each once"),
        (SCATTER, ("[0]", "[0, 0]"), "each once"),
        (SCATTER, ("[0]", "[]"), "each once"),
        (
            SCATTER,
            ("%u, %at : tensor<3x4xf32>, tensor<3x1xi32>", "%x, %at : tensor<3x7xf32>, tensor<3x1xi32>"),
            "slices",
        ),
        (SCATTER, ("%at : tensor<3x4xf32>, tensor<3x1xi32>", "%two : tensor<3x4xf32>, tensor<3x2xi32>"), "indices"),
        (
            GATHER,
            (
                "%one, %on : tensor<6x4xf32>, tensor<3xi32>, tensor<3xi1>",
                "%one, %c : tensor<6x4xf32>, tensor<3xi32>, tensor<4xf32>",
            ),
            "mask",
        ),
        (GATHER, ("-> tensor<3x4xf32>", "-> tensor<3x4xi32>"), "a result has another type"),
        (LOAD, ("yield %j, %i, %z : index, index, f32", "yield %j, %z : index, f32"), "takes 2 indices and yields 2"),
        (LOAD, ("-> tensor<3x4xf32>", "-> tensor<6x4xf32>"), "types of the result"),
        (STORE, ("%z : index, index, i1", "%b : index, index, index"), "what the body yields last"),
        (STORE, ("%i: index, %j: index", "%i: index, %j: index, %o: index"), "takes 2 indices and yields 2"),
    ],
)
def test_what_does_not_fit(text: str, change: tuple[str, str], says: str):
    assert change[0] in text
    refused(text.replace(change[0], change[1], 1), ARGUMENTS, says=says)


@pytest.mark.parametrize(
    ("left", "right", "fits"),
    [
        ((3, 4), (3, 4), True),
        ((-1, 4), (3, 4), True),
        ((3, 4), (3, -1), True),
        ((3,), (3, 4), False),
        ((3, 4), (4, 3), False),
    ],
)
def test_sizes_that_are_known_agree(left: tuple[int, ...], right: tuple[int, ...], fits: bool):
    if fits:
        check_sizes(left, right, "these")
        return
    with pytest.raises(VerifyException, match=r"these: sizes .* differ"):
        check_sizes(left, right, "these")


@pytest.mark.parametrize(("axis", "rest"), [(0, (5, 7)), (1, (3, 7)), (2, (3, 5))])
def test_the_sizes_beside_an_axis(axis: int, rest: tuple[int, ...]):
    assert without((3, 5, 7), axis) == rest


# attention and custom ops ---------------------------------------------------------------------------------------------

MAP = "affine_map<(b, m, k1, k2, n) -> ({})>"
QKV = [MAP.format(dims) for dims in ("b, m, k1", "b, k2, k1", "b, k2, n", "", "b, m, n")]
ATTENTION = f"""%r = iree_linalg_ext.attention {{indexing_maps = [{", ".join(QKV)}]}}
  ins(%q, %k, %v, %s : tensor<2x3x4xf32>, tensor<2x5x4xf32>, tensor<2x5x6xf32>, f32) outs(%o : tensor<2x3x6xf32>) {{
  ^bb0(%e: f32):
    iree_linalg_ext.yield %e : f32
  }} -> tensor<2x3x6xf32>"""
HEADS = """%q: tensor<2x3x4xf32>, %k: tensor<2x5x4xf32>, %v: tensor<2x5x6xf32>, %s: f32, %o: tensor<2x3x6xf32>,
  %mask: tensor<2x3x5xi1>, %top: tensor<2x3xf32>"""
MASK_MAP, TOP_MAP = MAP.format("b, m, k2"), MAP.format("b, m")
MASKED = (
    ATTENTION.replace(QKV[3] + ",", f"{QKV[3]}, {MASK_MAP},")
    .replace("%s : ", "%s, %mask : ")
    .replace("f32) outs", "f32, tensor<2x3x5xi1>) outs")
)
ONLINE = (
    ATTENTION.replace("%r =", "%r:3 =")
    .replace(".attention", ".online_attention")
    .replace("]}", f", {TOP_MAP}, {TOP_MAP}]}}")
    .replace("%o : tensor<2x3x6xf32>", "%o, %top, %top : tensor<2x3x6xf32>, tensor<2x3xf32>, tensor<2x3xf32>")
    .replace("-> tensor<2x3x6xf32>", "-> tensor<2x3x6xf32>, tensor<2x3xf32>, tensor<2x3xf32>")
)


@pytest.mark.parametrize(
    ("kind", "text", "inputs", "outputs"),
    [(AttentionOp, ATTENTION, 4, 1), (AttentionOp, MASKED, 5, 1), (OnlineAttentionOp, ONLINE, 4, 3)],
)
def test_attention_reads_back(kind: type[AttentionOp] | type[OnlineAttentionOp], text: str, inputs: int, outputs: int):
    op = op_of(kind, text, HEADS)
    assert (len(op.inputs), len(op.outputs), len(op.res)) == (inputs, outputs, outputs)
    assert "kept" in op_of(kind, text.replace("{indexing", "{kept, indexing"), HEADS).attributes


@pytest.mark.parametrize(
    ("change", "says", "code"),
    [
        (("indexing_maps", "maps"), "expected indexing_maps", "E0301"),
        ((QKV[3] + ", ", ""), "a map for each of them", "E0302"),
        (("-> tensor<2x3x6xf32>", "-> tensor<2x3x6xf16>"), "a result has another type", "E0302"),
        (("^bb0(%e: f32)", "^bb0(%e: f32, %f: f32)"), "the body takes a score and yields one", "E0302"),
        ((QKV[0], MAP.format("b, m")), "a map does not fit its operand", "E0302"),
        ((QKV[4], "affine_map<(b, m, n) -> (b, m, n)>"), "a map does not fit its operand", "E0302"),
    ],
)
def test_attention_that_does_not_fit(change: tuple[str, str], says: str, code: str):
    assert change[0] in ATTENTION
    refused(ATTENTION.replace(*change), HEADS, says=says, code=code)


CUSTOM = """%r = iree_linalg_ext.custom_op {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
    iterator_types = [#iree_linalg_ext.iterator_type<parallel>, #iree_linalg_ext.iterator_type<reduction>]}
  ins(%x : tensor<3x7xf32>) outs(%v : tensor<3xf32>) {
  ^bb0(%a: tensor<?x7xf32>, %o: tensor<?xf32>):
    iree_linalg_ext.yield %o : tensor<?xf32>
  } -> tensor<3xf32>"""


def test_custom_ops_read_back():
    op = op_of(CustomOp, CUSTOM, ARGUMENTS)
    assert (len(op.inputs), len(op.outputs), len(op.indexing_maps)) == (1, 1, 2)
    kinds = [kind.kind.data for kind in op.iterator_types if isinstance(kind, IteratorTypeAttr)]
    assert kinds == ["parallel", "reduction"]
    plain = CUSTOM.replace("  ins(%x : tensor<3x7xf32>) ", "  ").replace("%a: tensor<?x7xf32>, ", "")
    assert not op_of(CustomOp, plain.replace("(i, j)>, affine_map<(i, j) -> (i)>", "(i)>"), ARGUMENTS).inputs


@pytest.mark.parametrize(
    ("change", "says", "code"),
    [
        (("iterator_types", "kinds"), "expected indexing_maps and iterator_types", "E0301"),
        (("-> tensor<3xf32>", "-> tensor<3xf16>"), "whose types the results have", "E0302"),
        (("%a: tensor<?x7xf32>, ", ""), "the body takes a tile of each operand", "E0302"),
        (("%a: tensor<?x7xf32>", "%a: tensor<?x6xf32>"), "another element type or rank", "E0302"),
        (("%a: tensor<?x7xf32>", "%a: tensor<?xf32>"), "another element type or rank", "E0302"),
        (("%a: tensor<?x7xf32>", "%a: f32"), "another element type or rank", "E0302"),
        (("yield %o : tensor<?xf32>", "yield %a : tensor<?x7xf32>"), "another element type or rank", "E0302"),
        (("yield %o : tensor<?xf32>", "yield %o, %o : tensor<?xf32>, tensor<?xf32>"), "another element type", "E0302"),
    ],
)
def test_custom_ops_that_do_not_fit(change: tuple[str, str], says: str, code: str):
    assert change[0] in CUSTOM
    refused(CUSTOM.replace(*change), ARGUMENTS, says=says, code=code)


def test_bodies_end_with_their_own_yield():
    refused(SCAN.replace("iree_linalg_ext.yield %r0 : f32", "%z = arith.negf %r0 : f32"), ARGUMENTS, says="ends with")
