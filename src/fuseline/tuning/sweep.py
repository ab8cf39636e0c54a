"""The first trials of a search, in order: each choice once, those about different dispatches together.

the default                          {}
what changes all of the program      {dedup: none}  {dedup: exact}  {threads: 1}  ...
what changes some dispatches         {a|b: apart, d+e: join}  {b|c: apart}  ...
"""

from __future__ import annotations

from collections.abc import Sequence

from fuseline.tuning.attributed import Places
from fuseline.tuning.knob import Knob


def sweep(knobs: Sequence[Knob], places: Places, *, together: bool) -> list[dict[str, str]]:
    """What each trial changes. `together`: whether outcomes tell choices about different dispatches apart."""
    everywhere = [knob for knob in knobs if places.everywhere(knob.name)]
    local = [knob for knob in knobs if not places.everywhere(knob.name)]
    alone = [{knob.name: choice} for knob in everywhere for choice in knob.choices[1:]]
    choices = [(knob.name, choice) for knob in local for choice in knob.choices[1:]]
    if not together:
        return [{}, *alone, *({name: choice} for name, choice in choices)]
    return [{}, *alone, *_apart(choices, places)]


def _apart(choices: Sequence[tuple[str, str]], places: Places) -> list[dict[str, str]]:
    """The choices in as few trials as possible, no two of one trial about the same dispatch: each goes into the first
    trial that it fits into."""
    trials: list[dict[str, str]] = []
    for name, choice in choices:
        fits = next((trial for trial in trials if not any(places.overlap(name, other) for other in trial)), None)
        if fits is None:
            trials.append({name: choice})
        else:
            fits[name] = choice
    return trials
