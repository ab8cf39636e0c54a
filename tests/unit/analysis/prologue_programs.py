"""Programs of one root and what makes its operands, and what is said of reading through that."""

from __future__ import annotations

from xdsl.dialects import func
from xdsl.dialects.builtin import TensorType
from xdsl.parser import Parser

from fuseline.analysis.prologue import prologue
from fuseline.analysis.prologue_kind import Prologue
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import Kind, StructuredOp, is_generic, kind
from fuseline.ir.context import new_context
from fuseline.ir.costs import MachineCosts

HEAVY = (Kind.CONTRACTION, Kind.CONVOLUTION, Kind.DEPTHWISE, Kind.POOLING, Kind.REDUCTION)


def judged(
    body: str, result: str, *arguments: str, operand: int = 0, stored: tuple[str, ...] = (), block_uses: int = 64,
    threads: int = 1,
) -> Prologue:  # fmt: skip
    """The prologue of `operand` of the only heavy op of `body`; ops that carry an attribute in `stored` stay
    outside."""
    text = (
        f"func.func @main({', '.join(f'%{name}' for name in arguments)}) -> {result} {{\n%zero = arith.constant "
        f"0.0 : f32\n{body}\n}}"
    )
    module = Parser(new_context(), text).parse_module()
    entry = next(op for op in module.body.block.ops if isinstance(op, func.FuncOp))
    ops = list(entry.body.block.ops)
    root = next(op for op in ops if kind(op) in HEAVY)
    assert is_generic(root)
    tensors = [op for op in ops if op.results and isinstance(op.results[0].type, TensorType) and op is not root]
    members = {op for op in tensors if not any(name in op.attributes for name in stored)}
    costs = MachineCosts(block_uses=block_uses)
    return prologue(StructuredOp(root), operand, members, ShapeAnalysis(), costs, threads=threads)


def matmul(a: str, b: str, m: int, k: int, n: int) -> str:
    return f"""
    %e = tensor.empty() : tensor<{m}x{n}xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32>
    %r = linalg.generic {{indexing_maps = [affine_map<(i, j, l) -> (i, l)>, affine_map<(i, j, l) -> (l, j)>,
        affine_map<(i, j, l) -> (i, j)>],
        iterator_types = ["parallel", "parallel", "reduction"]}}
            ins({a}, {b} : tensor<{m}x{k}xf32>, tensor<{k}x{n}xf32>)
        outs(%f : tensor<{m}x{n}xf32>) {{
    ^bb0(%bx: f32, %by: f32, %bz: f32):
      %bp = arith.mulf %bx, %by : f32
      %bs = arith.addf %bz, %bp : f32
      linalg.yield %bs : f32
    }} -> tensor<{m}x{n}xf32>
    return %r : tensor<{m}x{n}xf32>"""


def unary(result: str, source: str, shape: str, body: str, *, tag: str = "") -> str:
    """`result = body(source)`, a generic over two dimensions."""
    attributes = f" attrs = {{{tag}}}" if tag else ""
    return f"""
    {result}e = tensor.empty() : tensor<{shape}xf32>
    {result} = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
        iterator_types = ["parallel", "parallel"]}} ins({source} : tensor<{shape}xf32>)
            outs({result}e : tensor<{shape}xf32>){attributes} {{
    ^bb0(%v: f32, %o: f32):
      {body}
      linalg.yield %w : f32
    }} -> tensor<{shape}xf32>"""
