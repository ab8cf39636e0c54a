"""Where a target from outside comes from, and how its failures are told: by its name and its own line, since they are
not ours."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from pathlib import Path

from fuseline.errors import FuselineError

CONTRACT_PAGE = "docs/targets.md has the contract"


@dataclass(frozen=True, slots=True)
class Origin:
    """`name` is what the user asked for, `source` the path or the entry point with its package, `root` the file or
    folder of the target's code (None where it has none)."""

    name: str
    source: str
    root: Path | None = None

    def wrong(self, message: str, hint: str = CONTRACT_PAGE) -> FuselineError:
        """E0802 naming the target."""
        return FuselineError("E0802", message, node=self.said, hint=hint)

    def raised(self, what: str, problem: BaseException) -> FuselineError:
        """The error for an exception that leaves the target while it does `what`: E0802 with the innermost line of its
        own; a coded one stays as it is, and so does the want of memory."""
        if isinstance(problem, FuselineError) and problem.code != "E0901":
            return problem
        kind = type(problem).__name__
        return self.wrong(f"{what} raised {kind}: {problem}".rstrip(": ") + self.place(problem))

    def place(self, problem: BaseException) -> str:
        """` (at file.py:12)`: the innermost line of the target's own code, empty where none is known."""
        if isinstance(problem, SyntaxError) and problem.filename and problem.lineno:
            return f" (at {Path(problem.filename).name}:{problem.lineno})"
        own = [frame for frame in traceback.extract_tb(problem.__traceback__) if self._is_own(frame.filename)]
        return f" (at {Path(own[-1].filename).name}:{own[-1].lineno})" if own else ""

    @property
    def said(self) -> str:
        """The name, and where it comes from if that says more."""
        return self.name if self.source in self.name else f"{self.name}, {self.source}"

    def _is_own(self, filename: str) -> bool:
        path = Path(filename)
        return self.root is not None and (path == self.root or self.root in path.parents)
