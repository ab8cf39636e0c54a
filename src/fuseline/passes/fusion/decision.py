"""Answers of fusion rules: values, never exceptions and never a bare False."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

WHY_NOT_CODES: dict[str, str] = {
    "arms-limit": "the dispatch would have more independent parts than the target allows",
    "binding-limit": "the merged dispatch would bind more buffers than the target allows",
    "broadcast": "the consumer's space is larger than the root's: each root value would be written many times",
    "code-limit": "the merged dispatch would be more code than the target takes",
    "consumer-reduces": "an epilogue must be all-parallel",
    "cycle": "a path from the producer to the consumer leaves the merged group",
    "few-steps": "the two go along one argument, with too few steps in common to share out among threads",
    "forbidden": "the plan forbids this merge",
    "host-op": "one side runs on the host",
    "indexing-map": "the reads of the intermediate do not map loops to loops one to one",
    "loop": "one side is a loop, whose steps are fused among themselves",
    "multi-use": "the producer is read in place and has other readers",
    "no-rule": "no fusion rule covers this pair of ops",
    "out-of-fuel": "the compile was given fuel for fewer merges",
    "parallelism": "too few parallel iterations would be left for the target's threads",
    "recompute": "elements of the producer would be computed more than once",
    "region": "one side is a dispatch region that stays as it is",
    "reshape-between": "a reshape that regroups dimensions lies between the two",
    "roots-limit": "the dispatch would have more roots than the target runs one after the other",
    "scratch": "the fused dispatch needs more scratch than the target allows",
    "strided-inner": "the serial inner loop would not run over contiguous memory",
    "target": "the target cannot emit the merged dispatch",
    "two-roots": "both sides already have a root op",
    "unbounded-size": "the scratch depends on a size without an upper bound",
    "unprofitable": "the merge would cost more time than it saves",
    "walk": "one side is made in one walk by a kernel of its own",
}
"""Every reason, one line each; `docs/why-not.md` explains them one by one."""


@dataclass(frozen=True, slots=True)
class Legal:
    """The merge keeps the meaning of the program. `numbers` go into the decision record."""

    numbers: Mapping[str, float] = field(default_factory=dict[str, float])


@dataclass(frozen=True, slots=True)
class WhyNot:
    """Why a merge is refused: a stable code, the ops or numbers at fault, and the node where it was seen."""

    code: str
    detail: str
    at: str = ""
    numbers: Mapping[str, float] = field(default_factory=dict[str, float])

    def __post_init__(self) -> None:
        if self.code not in WHY_NOT_CODES:
            raise KeyError(self.code)


@dataclass(frozen=True, slots=True)
class Forbid(WhyNot):
    """Why a merge must not be, whatever other rules say of it. The code is the rule's own: one line that reports show
    as it is."""

    def __post_init__(self) -> None:
        code = cast("object", self.code)
        if not isinstance(code, str) or not code.strip() or not code.isprintable():
            raise ValueError(f"a Forbid has a code of one line, not {code!r}")


@dataclass(frozen=True, slots=True)
class NotApplicable:
    """The rule is about other kinds of ops."""


Answer = Legal | WhyNot | NotApplicable
