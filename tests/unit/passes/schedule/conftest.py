"""Parses outlined programs, and runs their schedules with kernels made from LLVM text."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from fuseline.analysis.schedule import Schedule
from fuseline.ir.context import CompilerContext, new_context
from fuseline.passes.schedule.build_schedule import build_schedule


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
    return ctx, Parser(ctx, "builtin.module {" + text + "}").parse_module()


@pytest.fixture
def schedule_of() -> Callable[..., Schedule]:
    def make(text: str, ctx: CompilerContext | None = None, **options: object) -> Schedule:
        ctx, module = parse(executable("one", 1) + executable("two", 2) + text, ctx)
        return build_schedule(ctx, module, **options)  # pyright: ignore[reportArgumentType]

    return make
