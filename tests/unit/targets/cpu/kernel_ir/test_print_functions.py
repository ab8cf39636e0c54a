"""The LLVM text of what only functions have, line by line; that it is text LLVM takes is for test_functions.py."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from fuseline.targets.cpu.isa import Machine, machine
from fuseline.targets.cpu.kernel_ir.functions import FunctionBuilder
from fuseline.targets.cpu.kernel_ir.print_functions import HANDLERS, end, head
from fuseline.targets.cpu.kernel_ir.types import I32, I64, PTR, VOID, Address, Type, Value


@dataclass
class _Lines:
    """A printer that only collects."""

    machine: Machine = field(default_factory=lambda: machine("avx2"))
    lines: list[str] = field(default_factory=list[str])
    declarations: set[str] = field(default_factory=set[str])

    def out(self, value: Value, text: str) -> None:
        self.lines.append(f"  %v{value.number} = {text}")

    def pointer(self, address: Address) -> str:
        return f"%place{address.offset}"


@pytest.mark.parametrize(
    ("exported", "parameters", "result", "first", "last"),
    [
        (True, (I64, PTR), None, "define void @f(i64 %v1, ptr %v2)", "  ret void"),
        (False, (), 7, "define internal i64 @f()", "  ret i64 7"),
        (False, (PTR,), "first", "define internal ptr @f(ptr %v1)", "  ret ptr %v1"),
    ],
)
def test_first_and_last_line(
    exported: bool, parameters: tuple[Type, ...], result: int | str | None, first: str, last: str
) -> None:
    f = FunctionBuilder("f", parameters, exported=exported)
    function = f.finish(f.parameters[0] if isinstance(result, str) else result)
    assert (head(function), end(function)) == (first, last)


def _printed(make: Any, isa: str = "avx2") -> tuple[list[str], set[str]]:
    """What the operations of a function with parameters `%v1` (ptr) and `%v2` (i64) are as text."""
    f, p = FunctionBuilder("f", (PTR, I64)), _Lines(machine(isa))
    make(f, *f.parameters)
    for op in f.finish().body.ops:
        assert isinstance(op, Value)
        if op.op in HANDLERS:
            HANDLERS[op.op](p, op)
    return p.lines, p.declarations


@pytest.mark.parametrize(
    ("make", "line"),
    [
        (lambda f, p, n: f.advance(p, 16), "%v3 = getelementptr i8, ptr %v1, i64 16"),
        (lambda f, p, n: f.advance(p, n), "%v3 = getelementptr i8, ptr %v1, i64 %v2"),
        (lambda f, p, n: f.not_null(p), "%v3 = icmp ne ptr %v1, null"),
        (lambda f, p, n: f.stack(n), "%v3 = alloca i64, i64 %v2, align 16"),
        (lambda f, p, n: f.atomic_load(f.words(p, 4), "acquire", 8), "load atomic i64, ptr %place1 acquire, align 8"),
        (lambda f, p, n: f.atomic("add", f.words(p, 4), n, 16), "atomicrmw add ptr %place2, i64 %v2 seq_cst"),
        (lambda f, p, n: f.atomic("xchg", f.words(p, 4), 3), "atomicrmw xchg ptr %place0, i64 "),
        (lambda f, p, n: f.call("g", (p, 4)), "call void @g(ptr %v1, i64 4)"),
        (lambda f, p, n: f.call("g", (n,), I64), "%v3 = call i64 @g(i64 %v2)"),
        (lambda f, p, n: f.call(p, (n, 2)), "call void %v1(i64 %v2, i64 2)"),
    ],
)
def test_one_line_each(make: Any, line: str) -> None:
    lines, declarations = _printed(make)
    assert len(lines) == 1 and line in lines[0] and not declarations


@pytest.mark.parametrize(
    ("isa", "declaration", "call"),
    [
        ("avx2", "declare void @llvm.x86.sse2.pause()", "  call void @llvm.x86.sse2.pause()"),
        ("neon", "declare void @llvm.aarch64.hint(i32)", "  call void @llvm.aarch64.hint(i32 1)"),
    ],
)
def test_a_pause_is_what_the_machine_has(isa: str, declaration: str, call: str) -> None:
    assert _printed(lambda f, p, n: f.pause(), isa) == ([call], {declaration})


def test_a_call_with_any_number_of_arguments_says_so() -> None:
    p, number = _Lines(), Value("parameter", I64, (), None, 1, 0)
    call = Value("call", I32, (number, 5), ("syscall", True), 2, 0)
    HANDLERS["call"](p, call)
    assert p.lines == ["  %v2 = call i32 (i64, ...) @syscall(i64 %v1, i64 5)"]
    assert VOID != I32
