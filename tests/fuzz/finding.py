"""What a case shows that it should not."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.fuzz.case import Choices


@dataclass(slots=True)
class Finding:
    """What is wrong: `kind` is wrong, interpreter, unstable, changed-feeds, refused, internal, traceback, crash, hang
    or error.

    `choices`: under which it showed, where that is known.
    """

    kind: str
    detail: str
    output: str = ""
    choices: Choices | None = None
    extra: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def severe(self) -> bool:
        """Whether a run fails for it: what is refused with a code only counts."""
        return self.kind != "refused"
