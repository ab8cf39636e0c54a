"""What is known of each choice by itself: what it gained, and which cannot be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from fuseline.tuning.attributed import Places, is_noise, relative_time, share_of
from fuseline.tuning.knob import Knob
from fuseline.tuning.told import Told

Choice = tuple[str, str]
"""A knob and what it is set to."""

LEAST_GAIN = {"predicted": 1e-5, "measured": 3e-3}
"""The share of a run that a choice must gain to be worth a trial together with others: less is noise."""


class Effects:
    """Learns from trials, each against the one that it was compared with. `gains`: shares of a run."""

    def __init__(self, knobs: Sequence[Knob], places: Places) -> None:
        self.knobs, self.places = {knob.name: knob for knob in knobs}, places
        self.gains: dict[Choice, float] = {}
        self.impossible: set[Choice] = set()
        self._least = LEAST_GAIN["predicted"]

    def differences(self, told: Told, base: Told) -> dict[str, str]:
        """The knobs that two trials set otherwise, with the choices of the first."""
        names = [name for name in self.knobs if name in told.configuration or name in base.configuration]
        chosen = {name: self.choice(told.configuration, name) for name in names}
        return {name: choice for name, choice in chosen.items() if choice != self.choice(base.configuration, name)}

    def choice(self, configuration: Mapping[str, str], name: str) -> str:
        """What a configuration sets a knob to."""
        return configuration.get(name, self.knobs[name].choices[0])

    def add(self, told: Told, base: Told, default_seconds: float) -> None:
        """A trial that was timed: the share of a run that each of its choices gains, where that can be told apart."""
        if told.outcome.ratio is not None:
            self._least = LEAST_GAIN["measured"]
        changes = self.differences(told, base)
        changed = frozenset[str]().union(*(self.places.ops[name] for name in changes))
        for name, choice in changes.items():
            gain = self._gain(told, base, name, changes, changed, default_seconds)
            if gain is not None:
                self.gains[name, choice] = gain

    def blame(self, told: Told, base: Told) -> list[dict[str, str]]:
        """A trial that failed: the choice that did it is impossible, if it is known; else the parts of the trial to
        try by themselves."""
        changes = self.differences(told, base)
        guilty = self._guilty(changes, told)
        if guilty is not None:
            self.impossible.add((guilty, changes.pop(guilty)))
            return [changes] if changes else []
        names = list(changes)
        middle = len(names) // 2
        return [{name: changes[name] for name in half} for half in (names[:middle], names[middle:]) if half]

    def combination(self) -> dict[str, str]:
        """What gains, together: of choices about the same dispatches, the one that gains most."""
        found: dict[str, str] = {}
        for (name, choice), gain in sorted(self.gains.items(), key=lambda item: (-item[1], item[0])):
            if gain < self._least or name in found or (name, choice) in self.impossible:
                continue
            if not any(self._clash(name, other) for other in found):
                found[name] = choice
        return {name: choice for name, choice in found.items() if choice != self.knobs[name].choices[0]}

    def alive(self, knob: Knob) -> list[str]:
        """The choices of a knob that may be tried."""
        return [choice for choice in knob.choices if (knob.name, choice) not in self.impossible]

    def _clash(self, first: str, second: str) -> bool:
        everywhere = self.places.everywhere(first) or self.places.everywhere(second)
        return not everywhere and self.places.overlap(first, second)

    def _gain(
        self,
        told: Told,
        base: Told,
        name: str,
        changes: Iterable[str],
        changed: frozenset[str],
        default_seconds: float,
    ) -> float | None:
        others = [other for other in changes if other != name]
        if any(self.places.overlap(name, other) for other in others):
            return None
        ops = self.places.ops[name]
        share = base.outcome.seconds / default_seconds if default_seconds > 0 else 1.0
        relative = relative_time(told.outcome, base.outcome, ops, changed) if ops else None
        if relative is not None and is_noise(told.outcome, ops):
            return 0.0
        if relative is not None:
            return share * (1 - relative) * share_of(base.outcome, ops)
        if others or told.relative is None or base.relative is None:
            return None
        return base.relative - told.relative

    def _guilty(self, changes: Mapping[str, str], told: Told) -> str | None:
        if len(changes) == 1:
            return next(iter(changes))
        nodes = set(((told.outcome.error or {}).get("node") or "").split(", "))
        suspects = [name for name in changes if nodes.intersection(self.knobs[name].nodes)]
        return suspects[0] if len(suspects) == 1 else None
