"""What is only asked of programs with native code."""

from __future__ import annotations

from fuseline.compiled_model import CompiledModel
from fuseline.errors import FuselineError
from fuseline.runtime import Session


def native_session(program: CompiledModel, option: str) -> Session:
    """The session of a program that has native code; raises E0501, naming the option that asks for it, for any other
    target's."""
    if not isinstance(program.session, Session):
        raise FuselineError("E0501", f"{option} needs a target with code", hint="use --target cpu")
    return program.session
