"""Functions of one `linalg.generic`, written in short."""

from __future__ import annotations

from xdsl.dialects import linalg
from xdsl.dialects.func import FuncOp

from fuseline.analysis.structured import StructuredOp
from fuseline.ir.context import new_context
from fuseline.ir.text import parse_module


def generic(maps: list[str], kinds: str, ins: list[str], outs: list[str], body: str) -> FuncOp:
    """A function of one generic: types as MLIR writes them, maps as their results, `kinds` p or r per loop.

    The arguments of the body are %a0, %a1, ... in operand order.
    """
    operands = [*ins, *outs]
    elements = [t.removeprefix("tensor<").removesuffix(">").split("x")[-1] for t in operands]
    dims = ", ".join(f"d{i}" for i in range(len(kinds)))
    map_text = ", ".join(f"affine_map<({dims}) -> ({m})>" for m in maps)
    iterators = ", ".join('"parallel"' if kind == "p" else '"reduction"' for kind in kinds)
    args = ", ".join(f"%x{i}: {t}" for i, t in enumerate(operands))
    names = [f"%x{i}" for i in range(len(operands))]
    results = ", ".join(outs)
    text = f"""func.func @main({args}) -> ({results}) {{
      %r:{len(outs)} = linalg.generic {{indexing_maps = [{map_text}], iterator_types = [{iterators}]}}
        ins({", ".join(names[: len(ins)])} : {", ".join(ins)}) outs({", ".join(names[len(ins) :])} : {results}) {{
      ^bb0({", ".join(f"%a{i}: {e}" for i, e in enumerate(elements))}):
        {body}
      }} -> {f"({results})" if len(outs) > 1 else results}
      return {", ".join(f"%r#{i}" for i in range(len(outs)))} : {results}
    }}"""
    (function,) = parse_module(text, new_context()).ops
    assert isinstance(function, FuncOp)
    return function


def op_of(function: FuncOp) -> linalg.ops.GenericOp:
    """The generic of a function that has one."""
    (op,) = (op for op in function.walk() if isinstance(op, linalg.ops.GenericOp))
    return op


def view_of(maps: list[str], kinds: str, ins: list[str], outs: list[str], body: str) -> StructuredOp:
    """The view of the generic that `generic` writes."""
    return StructuredOp(op_of(generic(maps, kinds, ins, outs, body)))
