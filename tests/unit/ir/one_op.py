"""Single ops as text: read, printed, read again; or refused."""

from __future__ import annotations

from typing import TypeVar

import pytest
from xdsl.ir import Operation

from fuseline.errors import FuselineError
from fuseline.ir.context import new_context
from fuseline.ir.text import parse_module, print_module

OpT = TypeVar("OpT", bound=Operation)


def op_of(kind: type[OpT], lines: str, arguments: str = "") -> OpT:
    """The one op of a class in a function of these lines. What is printed, in both forms, is the same program again,
    and is printed no other way the next time."""
    module = parse_module(f"func.func @main({arguments}) {{\n{lines}\nreturn\n}}", new_context())
    for generic in (False, True):
        text = print_module(module, generic=generic)
        again = parse_module(text, new_context())
        assert again.is_structurally_equivalent(module), text
        assert print_module(again, generic=generic) == text
    (found,) = [op for op in module.walk() if type(op) is kind]
    return found


def refused(lines: str, arguments: str = "", *, says: str, code: str = "E0302") -> None:
    """The lines are no program, and the message says why."""
    with pytest.raises(FuselineError) as caught:
        parse_module(f"func.func @main({arguments}) {{\n{lines}\nreturn\n}}", new_context())
    assert caught.value.code == code and says in caught.value.message, caught.value.message
