"""What rewriting did to a graph, and what it left as it was and why."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Refusal:
    """A place that a rewrite looked at and left: the rewrite, the node, and the reason as one line."""

    rewrite: str
    node: str
    reason: str


@dataclass
class Summary:
    """The nodes before and after by operator, how often each rewrite did something, and where it did not.

    `before` and `after` count the nodes of the main graph; `done` maps a rewrite's name to the number of its changes.
    """

    before: Counter[str] = field(default_factory=Counter[str])
    after: Counter[str] = field(default_factory=Counter[str])
    done: Counter[str] = field(default_factory=Counter[str])
    refused: dict[Refusal, None] = field(default_factory=dict[Refusal, None])

    def did(self, rewrite: str, count: int = 1) -> None:
        """Count a change."""
        self.done[rewrite] += count

    def refuse(self, rewrite: str, node: str | None, reason: str) -> None:
        """Note that a rewrite left a node as it was; saying so again changes nothing."""
        self.refused[Refusal(rewrite, node or "", reason)] = None

    def as_json(self) -> dict[str, Any]:
        """The summary as a document."""
        operators = sorted(self.before | self.after)
        return {
            "nodes": {"before": self.before.total(), "after": self.after.total()},
            "operators": {name: {"before": self.before[name], "after": self.after[name]} for name in operators},
            "rewrites": dict(self.done),
            "left": [vars(refusal) for refusal in self.refused],
        }
