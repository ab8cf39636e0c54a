"""Which configuration is tried next. It depends on the seed, the space and the trials told so far, and on nothing else.

sweep          each choice once, those about different dispatches together
combination    what gained, together; again whenever that is something new
sampling       region by region, several regions in one trial
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from random import Random

from fuseline.tuning.attributed import Places, dispatch_times, relative_time
from fuseline.tuning.contradictions import Contradictions
from fuseline.tuning.effects import Effects
from fuseline.tuning.knob import Knob, without_defaults
from fuseline.tuning.region import Region, digest_number, regions
from fuseline.tuning.sweep import sweep
from fuseline.tuning.told import Told, TrialsTold

HOPELESS = -0.02
"""A choice that gains less than this share of a run by itself is not sampled any more."""

COMBINED_EVERY = 3
"""Trials of which one, at the most, is a combination, once regions are sampled."""

_DRAWS = 40
"""Before a space counts as searched."""


class Proposer:
    """Proposes trials; `trials` are those told, which whoever runs the search adds to."""

    def __init__(self, knobs: Sequence[Knob], places: Places, trials: TrialsTold, seed: int) -> None:
        self.knobs, self.places, self.trials, self.seed = tuple(knobs), places, trials, seed
        self.effects = Effects(knobs, places)
        self.contradictions = Contradictions(self.effects.knobs, places)
        self._seen: set[tuple[tuple[str, str], ...]] = set()
        self._queue: deque[dict[str, str]] = deque([{}])
        self._swept = False
        self._regions: list[Region] | None = None
        self._spread = 8
        self._relative: dict[tuple[int, int], float] = {}

    def propose(self, number: int) -> dict[str, str] | None:
        """The configuration of trial `number`, its choices that are no default; None where nothing new is left, or
        nothing can be said before more trials are told."""
        if number > 0 and not self.trials.trials:
            return None
        queued = self._queued()
        if queued is not None:
            return queued
        return self._sampled(number) if self._swept else None

    def saw(self, configuration: Mapping[str, str]) -> None:
        """A trial that an earlier process began is not proposed again."""
        self._seen.add(tuple(without_defaults(configuration, self.knobs).items()))

    def told(self, told: Told) -> None:
        """Learn from a trial that was just added to `trials`."""
        if not self._swept:
            self._swept = True
            together = self._attributed
            self._queue.extend(sweep(self.knobs, self.places, together=together)[1:])
        base = self.trials.trials[told.against]
        if told.outcome.state in ("failed", "wrong"):
            self._spread = max(self._spread // 2, 1)
            self.contradictions.learn(told.configuration, told.outcome.error or {})
            self._queue.extendleft(reversed(self.effects.blame(told, base)))
            return
        self._spread = min(self._spread + 1, 8)
        if told.number:
            self.effects.add(told, base, self.trials.default_seconds())
        for index, region in enumerate(self._regions or ()):
            self._teach(index, region, told)

    @property
    def _attributed(self) -> bool:
        """Whether outcomes say what each dispatch takes, and that is what counts."""
        goal = self.trials.goal
        return goal.of_time and not goal.several and bool(dispatch_times(self.trials.trials[0].outcome))

    # proposals --------------------------------------------------------------------------------------------------------

    def _queued(self) -> dict[str, str] | None:
        while self._queue:
            found = self._new({**self._near, **self._queue.popleft()})
            if found is not None:
                return found
        return None

    def _sampled(self, number: int) -> dict[str, str] | None:
        together = self._combined(number)
        if together is not None:
            return together
        if self._regions is None:
            self._begin_regions()
        assert self._regions is not None
        for draw in range(_DRAWS):
            found = self._new(self._drawn(Random(digest_number(self.seed, number, draw)), draw))
            if found is not None:
                return found
        return None

    def _combined(self, number: int) -> dict[str, str] | None:
        if self.trials.goal.several or (self._regions is not None and number % COMBINED_EVERY):
            return None
        gaining = self.effects.combination()
        kept = {n: choice for n, choice in self._near.items() if self.effects.gains.get((n, choice), 0.0) >= 0}
        together = self._new({**kept, **gaining})
        return together if together is not None else self._new(gaining)

    def _drawn(self, random: Random, draw: int) -> dict[str, str]:
        assert self._regions is not None
        near = dict(random.choice(self.trials.front()).configuration if self.trials.goal.several else self._near)
        count = min(len(self._regions), max(1, self._spread >> (draw // 8)))
        changes: dict[str, str] = {}
        for region in random.sample(self._regions, count):
            changes |= region.proposal(near, random.getrandbits(31))
        beyond = max(0, 1 + (draw - _DRAWS // 2) // 5)  # the sampler has settled: anything that was not tried
        for knob in random.sample(self.knobs, min(beyond, len(self.knobs))):
            changes[knob.name] = random.choice(knob.choices)
        return {**near, **changes}

    def _new(self, configuration: Mapping[str, str]) -> dict[str, str] | None:
        """A configuration without what is impossible or contradicts itself, unless it was proposed before."""
        possible = {n: choice for n, choice in configuration.items() if (n, choice) not in self.effects.impossible}
        found = self.contradictions.without(without_defaults(possible, self.knobs))
        key = tuple(found.items())
        if key in self._seen:
            return None
        self._seen.add(key)
        return found

    @property
    def _near(self) -> Mapping[str, str]:
        best = self.trials.best
        return best.configuration if best is not None else {}

    # regions ----------------------------------------------------------------------------------------------------------

    def _begin_regions(self) -> None:
        """Regions of what is left to choose, with what is known of them."""
        left = [knob for knob in self.knobs if self._worth_sampling(knob)]
        found = regions(left, self.places) if self._attributed else [left]
        self._regions = [Region(knobs, len(self.trials.goal.objectives)) for knobs in found if knobs]
        for told in self.trials.trials:
            for index, region in enumerate(self._regions):
                self._teach(index, region, told)

    def _worth_sampling(self, knob: Knob) -> bool:
        gains = (self.effects.gains.get((knob.name, choice), 0.0) for choice in self.effects.alive(knob)[1:])
        return any(gain > HOPELESS for gain in gains)

    def _teach(self, index: int, region: Region, told: Told) -> None:
        """What the choices of a region came to in a trial: the time of its dispatches, where that is known."""
        values = self._values(index, region, told)
        if values is not None:
            region.add(told.configuration, values)

    def _values(self, index: int, region: Region, told: Told) -> Sequence[float] | None:
        if not self._attributed or self.places.everywhere(region.knobs[0].name):
            return told.values if self.trials.goal.several or not self.trials.goal.of_time else _one(told.relative)
        base = self.trials.trials[told.against]
        changes = self.effects.differences(told, base)
        if any(self.places.everywhere(name) for name in changes):
            return None
        ops = frozenset[str]().union(*(self.places.ops[knob.name] for knob in region.knobs))
        changed = frozenset[str]().union(*(self.places.ops[name] for name in changes))
        relative = relative_time(told.outcome, base.outcome, ops, changed)
        if relative is None:
            return None
        self._relative[index, told.number] = relative * self._relative.get((index, base.number), 1.0)
        return _one(self._relative[index, told.number])


def _one(value: float | None) -> Sequence[float] | None:
    return None if value is None else (value,)
