"""A program that is listed and not run: what targets make whose code runs elsewhere, or that make none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from fuseline.buffers import TensorSpec
from fuseline.runtime.program import Program


@dataclass(frozen=True)
class ListedProgram:
    """The boundary of a program, its records and its metadata; also its own artifact and session, which answer
    questions."""

    program: Program
    records: bytes
    metadata: Mapping[str, Any]
    threads: int = field(default=1, kw_only=True)

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        """The program's inputs."""
        return self.program.inputs

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        """The program's outputs."""
        return self.program.outputs

    @property
    def artifact(self) -> Self:
        """Itself: what a session is made from."""
        return self

    def session(self, threads: int | None = None) -> Self:
        """Itself: it answers questions and runs nothing."""
        del threads
        return self
