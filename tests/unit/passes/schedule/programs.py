"""Text of outlined programs."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from fuseline.ir.context import CompilerContext, new_context
from fuseline.ir.text import parse_module


def executable(name: str, operands: int) -> str:
    """An executable over 1-D tensors of one size; its body is a stand-in: schedules never look inside."""
    arguments = ", ".join(f"%a{i}: tensor<?xf32>" for i in range(operands))
    return f"""
  flow.executable private @{name} {{
    flow.executable.export public @{name}_entry
    builtin.module {{
      func.func @{name}_entry({arguments}, %n: index {{fuseline.name = "s0"}}) -> tensor<?xf32> {{
        func.return %a0 : tensor<?xf32>
      }}
    }}
  }}"""


def parse(text: str, ctx: CompilerContext | None = None) -> tuple[CompilerContext, ModuleOp]:
    ctx = ctx or new_context()
    return ctx, parse_module("builtin.module {" + text + "}", ctx)
