"""Schedules of programs given as text."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fuseline.ir.context import CompilerContext
from fuseline.passes.schedule.build_schedule import build_schedule
from fuseline.program.schedule import Schedule
from tests.unit.passes.schedule.programs import executable, parse


@pytest.fixture
def schedule_of() -> Callable[..., Schedule]:
    def make(text: str, ctx: CompilerContext | None = None, **options: object) -> Schedule:
        ctx, module = parse(executable("one", 1) + executable("two", 2) + text, ctx)
        return build_schedule(ctx, module, **options)  # pyright: ignore[reportArgumentType]

    return make
