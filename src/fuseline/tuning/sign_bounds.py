"""How many of so many rounds must agree before a comparison may be stopped, when one looks again and again.

A round says whether the trial took more of the incumbent's time than a line (a ratio). Who runs first in it is the toss
of a fair coin: where the two are equally fast, so is whom a slow moment, a drift or another process hits, and with it
on which side of 1 the round lies; nothing is assumed of the noise (R. A. Fisher's randomisation). The count above the
line is a random walk whose odds are known exactly. A bound for each look is chosen so that the walk ever reaches one
with a probability of at most `error`: the error is spent look by look (Lan and DeMets, Biometrika 70, 1983, here with
the spending function that imitates Pocock's test), and every probability is summed over the walk, not approximated.

    rounds above the line
      8 |        x  stop: 8 of 8
      6 |      .
      4 |    .            bounds:  8 of 8, 9 of 10, 11 of 12, ..
      2 |  .
        +--2--4--6--8--- rounds
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import comb, e, log

import numpy as np

LEAST_ROUNDS = 6
"""Fewer cannot show anything at one half of 5 %: all of 5 agree with probability 1/32."""

ERROR = 0.025
"""Of either side: an interval that is looked at again and again holds the median ratio with 95 %."""


@lru_cache(maxsize=256)
def sign_bounds(planned: int, error: float = ERROR) -> dict[int, int]:
    """The bound at each look, by the number of rounds (even, from `LEAST_ROUNDS` to `planned`); more than the rounds
    where nothing can be said yet. The last look spends all that is left of `error`.

    >>> sign_bounds(6), sign_bounds(12)
    ({6: 6}, {6: 7, 8: 8, 10: 9, 12: 10})
    """
    return dict(_bounds(planned, error))


LOOK_EVERY = 2
"""Rounds from look to look: fewer looks leave more for each."""


def last_bound(rounds: int, error: float = ERROR) -> int:
    """The bound where there is one look only, after all `rounds`.

    >>> last_bound(20)
    15
    """
    odds = np.array([comb(rounds, above) for above in range(rounds + 1)], dtype=float) * 0.5**rounds
    return _bound(odds, error)


def _bounds(planned: int, error: float) -> Iterator[tuple[int, int]]:
    odds, spent = np.ones(1), 0.0  # odds[s]: s rounds above the line, and no bound reached before
    for rounds in range(1, planned + 1):
        odds = 0.5 * (np.append(odds, 0.0) + np.insert(odds, 0, 0.0))
        if rounds % LOOK_EVERY == 0 and rounds >= LEAST_ROUNDS:
            bound = _bound(odds, spending(rounds / planned, error) - spent)
            spent += float(odds[bound:].sum())
            odds[bound:] = 0.0
            yield rounds, bound


def _bound(odds: np.ndarray, left: float) -> int:
    """The least count that is reached with a probability of at most `left`."""
    above = np.cumsum(odds[::-1])[::-1]
    return int(np.searchsorted(-above, -left * (1 + 1e-12)))


def spending(fraction: float, error: float) -> float:
    """How much of `error` may be spent when a `fraction` of the planned rounds is over: 0 to 1."""
    return error * log(1 + (e - 1) * fraction)
