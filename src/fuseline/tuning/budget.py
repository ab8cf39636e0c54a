"""How long a search goes on: so many trials, so much time, or both."""

from __future__ import annotations

import re
from dataclasses import dataclass

from fuseline.errors import FuselineError

_LIMIT = re.compile(r"(\d+(?:\.\d+)?)\s*(trials?|h|m|min|s)?", re.IGNORECASE)
_SECONDS = {"h": 3600.0, "m": 60.0, "min": 60.0, "s": 1.0}


@dataclass(frozen=True, slots=True)
class Budget:
    """The most trials that a study has, from its first on, and the most seconds that this search spends; None for no
    limit."""

    trials: int | None = None
    seconds: float | None = None

    def left(self, trials: int, seconds: float) -> bool:
        """Whether another trial may begin after so many, and so long."""
        return (self.trials is None or trials < self.trials) and (self.seconds is None or seconds < self.seconds)


def parse_budget(text: str) -> Budget:
    """The budget that `text` spells; raises E0501 for other text.

    >>> parse_budget("10m"), parse_budget("200 trials"), parse_budget("90s, 5 trials")
    (Budget(trials=None, seconds=600.0), Budget(trials=200, seconds=None), Budget(trials=5, seconds=90.0))
    """
    trials: int | None = None
    seconds: float | None = None
    for limit in text.split(","):
        found = _LIMIT.fullmatch(limit.strip())
        unit = (found[2] or "").lower() if found is not None else ""
        number = float(found[1]) if found is not None else 0.0
        if unit.startswith("trial") and trials is None and number.is_integer() and number > 0:
            trials = int(number)
        elif unit in _SECONDS and seconds is None and number > 0:
            seconds = number * _SECONDS[unit]
        else:
            hint = "write 10m, 90s, 1h or 200 trials, or a time and trials: '10m, 200 trials'"
            raise FuselineError("E0501", f"budget does not understand {text!r}", hint=hint)
    return Budget(trials, seconds)
