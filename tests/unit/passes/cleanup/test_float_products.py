"""What is written down of products that run in float: whose operands are dequantised, and why they stayed."""

from __future__ import annotations

import pytest
from xdsl.dialects import linalg

from fuseline.analysis.structured import StructuredOp
from fuseline.ir.context import new_context
from fuseline.ir.text import parse_module
from fuseline.passes.cleanup.float_products import CODE_OF, float_product, record_float_product, record_refused
from fuseline.report.records import CompileRecord, QuantizationRecord
from fuseline.targets.target import Refusal

MAP = "affine_map<(i, j) -> (i, j)>"
DEQUANTISED = """%n = arith.extsi %a : {stored} to i32
    %z = arith.constant 3 : i32
    %c = arith.subi %n, %z : i32
    %f = arith.sitofp %c : i32 to f32
    %s = arith.constant 0.5 : f32
    %r = arith.mulf %f, %s : f32"""


def _made(name: str, source: str, body: str, stored: str = "i8") -> str:
    """`%name` of `source`, by an op that comes from the node `dq_name`."""
    return f"""%{name}_e = tensor.empty() : tensor<4x4xf32>
  %{name} = linalg.generic {{indexing_maps = [{MAP}, {MAP}], iterator_types = ["parallel", "parallel"]}}
      ins(%{source} : tensor<4x4x{stored}>) outs(%{name}_e : tensor<4x4xf32>) {{
  ^bb0(%a: {stored}, %o: f32):
    {body.format(stored=stored)}
    linalg.yield %r : f32
  }} -> tensor<4x4xf32> loc("dq_{name}")
"""


SUM = "%p = arith.mulf %a, %b : f32\n %t = arith.addf %o, %p : f32"
LARGEST = "%t = arith.maximumf %o, %a : f32"


def _root(before: str, left: str, right: str, body: str = SUM) -> linalg.ops.GenericOp:
    """The product of two values of shape 4x4, from the node `product`."""
    text = f"""func.func @main(%x: tensor<4x4xi8>, %w: tensor<4x4xi8>, %h: tensor<4x4xi16>, %y: tensor<4x4xf32>)
      -> tensor<4x4xf32> {{
  {before}
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x4xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %m = linalg.generic {{indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>,
      affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]}}
      ins(%{left}, %{right} : tensor<4x4xf32>, tensor<4x4xf32>) outs(%i : tensor<4x4xf32>) {{
  ^bb0(%a: f32, %b: f32, %o: f32):
    {body}
    linalg.yield %t : f32
  }} -> tensor<4x4xf32> loc("product")
  return %m : tensor<4x4xf32>
}}"""
    generics = (op for op in parse_module(text, new_context()).walk() if isinstance(op, linalg.ops.GenericOp))
    return next(op for op in generics if StructuredOp(op).reduction)


LEFT, RIGHT = _made("l", "x", DEQUANTISED), _made("r", "w", DEQUANTISED)
BOTH = LEFT + RIGHT


def _record(*nodes: str) -> CompileRecord:
    return CompileRecord(quantize_nodes=list(nodes or ("dq_l", "dq_r")))


def _record_float(record: CompileRecord, root: linalg.ops.GenericOp, *, narrow: bool = False) -> None:
    record_float_product(record, float_product(record, root), narrow=narrow)


@pytest.mark.parametrize(("refused", "code"), CODE_OF.items())
def test_a_refused_product_names_both_sides_once(refused: str, code: str):
    record, root = _record(), _root(BOTH, "l", "r")
    for _ in range(2):
        record_refused(record, root, Refusal(refused, "a reason"))
    assert record.quantization == [
        QuantizationRecord(nodes=("dq_l", "dq_r"), readers=("product",), code=code, detail="a reason")
    ]
    record_refused(record, root, Refusal(refused, "another reason"))
    assert [one.detail for one in record.quantization] == ["a reason", "another reason"]


def test_an_operand_that_is_read_on_both_sides_is_named_once():
    record = _record()
    record_refused(record, _root(LEFT, "l", "l"), Refusal("sum-overflow", "long"))
    assert [one.nodes for one in record.quantization] == [("dq_l",)]


def test_only_nodes_that_quantise_are_named():
    record = _record("dq_r", "elsewhere")
    record_refused(record, _root(BOTH, "l", "r"), Refusal("sum-overflow", "long"))
    assert [one.nodes for one in record.quantization] == [("dq_r",)]
    record_refused(other := _record("elsewhere"), _root(BOTH, "l", "r"), Refusal("sum-overflow", "long"))
    assert other.quantization == []


@pytest.mark.parametrize(("left", "right", "before"), [("l", "y", LEFT), ("y", "r", RIGHT)])
def test_one_side_of_integers_says_that_the_other_is_none(left: str, right: str, before: str):
    _record_float(record := _record(), _root(before, left, right))
    (found,) = record.quantization
    assert found.nodes == (f"dq_{left if right == 'y' else right}",) and found.readers == ("product",)
    assert found.code == "qdq-one-side" and "no tensor of 8-bit integers" in found.detail


def test_beside_weights_that_stay_narrow_only_wider_integers_are_told():
    wide = _made("l", "h", DEQUANTISED, "i16") + _made("r", "w", DEQUANTISED)
    _record_float(record := _record("dq_l", "dq_r"), _root(wide, "l", "r"), narrow=True)
    assert [(one.nodes, one.code) for one in record.quantization] == [(("dq_l",), "qdq-type")]
    _record_float(record := _record("dq_l", "dq_r"), _root(_made("r", "w", DEQUANTISED), "y", "r"), narrow=True)
    assert not record.quantization


def test_integers_of_16_bits_have_a_reason_of_their_own():
    _record_float(record := _record(), _root(_made("l", "h", DEQUANTISED, "i16"), "l", "y"))
    assert [(one.nodes, one.code) for one in record.quantization] == [(("dq_l",), "qdq-type")]


@pytest.mark.parametrize(
    ("before", "left", "right", "body"),
    [
        ("", "y", "y", SUM),
        (_made("l", "y", "%r = math.exp %a : f32", "f32"), "l", "y", SUM),
        (LEFT, "l", "y", LARGEST),
    ],
    ids=["arguments", "no integers", "no product"],
)
def test_other_products_are_not_recorded(before: str, left: str, right: str, body: str):
    _record_float(record := _record(), _root(before, left, right, body))
    assert record.quantization == []
