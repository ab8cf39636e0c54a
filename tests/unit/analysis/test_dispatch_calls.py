"""How often executables are launched."""

from __future__ import annotations

from xdsl.dialects.func import FuncOp

from fuseline.dispatch.calls import call_counts
from fuseline.dispatch.executable_entry import entry_of
from fuseline.ir.flow import ExecutableOp
from tests.unit.passes.schedule.programs import executable, parse

T = "tensor<64xf32>"


def program(*launched: str) -> dict[str, FuncOp]:
    """The entries of a program with two executables, launched in this order."""
    calls = "\n".join(
        f"%v{i + 1} = flow.dispatch @{name}::@{name}_entry(%v{i}, %n) : ({T}, index) -> {T}"
        for i, name in enumerate(launched)
    )
    text = f"""
  func.func @main(%v0: {T} {{fuseline.name = "x"}}) -> {T} {{
    %n = arith.constant 64 : index
    {calls}
    func.return %v{len(launched)} : {T}
  }}"""
    _, module = parse(executable("one", 1) + executable("two", 1) + text)
    return {op.sym_name.data: entry_of(op) for op in module.ops if isinstance(op, ExecutableOp)}


def test_launches_are_counted_by_executable():
    entries = program("one", "two", "one", "one")
    assert call_counts([entries["one"], entries["two"]]) == [3, 1]


def test_entries_of_several_programs():
    first, second = program("one", "one"), program("two")
    assert call_counts([first["one"], second["one"], second["two"]]) == [2, 0, 1]


def test_a_function_that_stands_alone_is_launched_once():
    entry = program("one", "one")["one"]
    entry.detach()
    assert call_counts([entry]) == [1]
