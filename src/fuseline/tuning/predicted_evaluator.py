"""Trials on a target without code: compiled here, one after the other, and judged by what the cost model expects."""

from __future__ import annotations

from collections import deque

from fuseline.tuning.realize import realized
from fuseline.tuning.runner import TrialRunner
from fuseline.tuning.setting import SearchSetting
from fuseline.tuning.trial import Trial, TrialOutcome


class PredictedEvaluator:
    """An `Evaluator` for targets whose programs cannot run."""

    def __init__(self, setting: SearchSetting) -> None:
        self._runner = TrialRunner(setting, realized)
        self._waiting: deque[Trial] = deque()

    @property
    def capacity(self) -> int:
        """One."""
        return 1

    def submit(self, trial: Trial) -> None:
        """Compile `trial` when its outcome is asked for."""
        self._waiting.append(trial)

    def outcome(self, timeout: float | None = None) -> TrialOutcome | None:
        """The outcome of the next trial; None where none waits."""
        del timeout
        return self._runner.run(self._waiting.popleft()) if self._waiting else None

    def close(self) -> None:
        """Forget what waits."""
        self._waiting.clear()
        self._runner.close()
