"""Loops that the host repeats, whose programs are text yet: interpreted programs run them so. Each is compiled for the
interpreter when it first runs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from fuseline import executors
from fuseline.runtime import host
from fuseline.runtime.repeats import repeat

if TYPE_CHECKING:
    from fuseline.ir.repeat import RepeatNode


def install() -> None:
    """Let interpreted programs repeat programs that are text."""
    host.register(executors.REPEAT_TEXTS, execute, lambda node: "fuseline")


def execute(node: bytes, operands: Sequence[Any]) -> list[Any]:
    """Repeat the programs as long as the loop goes on. Raises FuselineError as a compile and a run of them do."""
    loop = _loop(node)
    return repeat(loop.node.header, loop.call, operands)


class _Loop:
    """The programs of one loop."""

    def __init__(self, node: RepeatNode) -> None:
        self.node, self._sessions = node, dict[str, Any]()

    def call(self, name: str, inputs: Sequence[Any]) -> list[Any]:
        """The outputs of one of them."""
        session = self._sessions.get(name)
        if session is None:
            session = self._sessions.setdefault(name, _compiled(self.node.texts[name]))
        feeds = {spec.name: value for spec, value in zip(session.inputs, inputs, strict=True)}
        return list(session.run(feeds).values())


def _compiled(text: str) -> Any:
    from fuseline.compilation import compile_program
    from fuseline.compile_options import CompileOptions
    from fuseline.ir.repeat import MlirText

    program: Any = compile_program(MlirText(text, "a loop"), CompileOptions(target="interpreter"))
    return program.session()


@lru_cache(maxsize=64)
def _loop(data: bytes) -> _Loop:
    from fuseline.ir.repeat import decoded

    return _Loop(decoded(data))
