"""Choices that cannot be made together, so that no trial is spent on them: a plan that forces two ops together and
keeps them apart is refused (E0701), and one whose group no rule covers (E0703).

    join a+b, without-rule r     under another pipeline a join forces whole groups: no `apart` within them
    join a+b, without-rule r     refused once: not again, whatever else changes
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fuseline.tuning.attributed import Places
from fuseline.tuning.effects import Choice
from fuseline.tuning.knob import Knob
from fuseline.tuning.spaces.plan import APART, JOIN

CODES = ("E0701", "E0703")
"""What compiles of contradicting choices raise: the same whenever they are made."""


class Contradictions:
    """Knows some from the start, and learns others from trials that failed."""

    def __init__(self, knobs: Mapping[str, Knob], places: Places) -> None:
        self._knobs, self._places = knobs, places
        self._known: set[tuple[str, frozenset[Choice]]] = set()

    def without(self, configuration: Mapping[str, str]) -> dict[str, str]:
        """The configuration without the joins that its other choices rule out."""
        made = frozenset(configuration.items())
        lost = {join for join, others in self._known if others <= made}
        lost |= {join for join in self._of(configuration, JOIN) if self._is_cut(join, configuration)}
        return {name: choice for name, choice in configuration.items() if choice != JOIN or name not in lost}

    def learn(self, configuration: Mapping[str, str], error: Mapping[str, Any]) -> None:
        """Remember why a trial failed, where that is known: the join that the error is about, with the variants of the
        pipeline that it was tried under, or with what was kept apart beside it."""
        if error.get("code") not in CODES:
            return
        joins = self._of(configuration, JOIN)
        nodes = set(str(error.get("node") or "").split(", "))
        named = [name for name in joins if nodes.intersection(self._knobs[name].nodes)] or joins
        if len(named) != 1:
            return
        variants = self._variants(configuration)
        near = [name for name in self._of(configuration, APART) if self._places.overlap(named[0], name)]
        self._known.add((named[0], frozenset((name, configuration[name]) for name in variants or near)))

    def _is_cut(self, join: str, configuration: Mapping[str, str]) -> bool:
        """Whether whole groups are forced together and some of their ops kept apart."""
        aparts = self._of(configuration, APART)
        return bool(self._variants(configuration)) and any(self._places.overlap(join, name) for name in aparts)

    def _of(self, configuration: Mapping[str, str], choice: str) -> list[str]:
        """The knobs of the plan that are set to `choice` where that is no default."""
        return [
            name
            for name, chosen in configuration.items()
            if chosen == choice and name in self._knobs and self._knobs[name].choices[0] != choice
            and self._knobs[name].space == "plan"
        ]  # fmt: skip

    def _variants(self, configuration: Mapping[str, str]) -> list[str]:
        return [
            name
            for name, choice in configuration.items()
            if (knob := self._knobs.get(name)) is not None and knob.space == "passes" and choice != knob.choices[0]
        ]
