"""What workers do in tests in place of trials; the folder where they leave marks stands in the setting's plan."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from fuseline.cluster.trial_work import TrialWork
from fuseline.cluster.worker_facts import worker_facts
from fuseline.errors import FuselineError
from fuseline.tuning.trial import Interval, Trial, TrialOutcome


def answer(work: TrialWork, trial: Trial) -> TrialOutcome:
    """An outcome with the kind of this machine."""
    return TrialOutcome(
        number=trial.number,
        state="complete",
        ratio=Interval(0.9, 0.8, 1.0),
        machine=worker_facts()["kind"],
        worker=str(os.getpid()),
    )


def when_told(work: TrialWork, trial: Trial) -> TrialOutcome:
    """Leave a mark that says who runs it, and answer once there is a file `go`, or one for this trial."""
    folder = Path(work.setting.plan)
    (folder / f"started-{trial.number}-{os.getpid()}").touch()
    for _ in range(6000):
        if (folder / "go").exists() or (folder / f"go-{trial.number}").exists():
            return answer(work, trial)
        time.sleep(0.02)
    raise TimeoutError


def ends_its_worker(work: TrialWork, trial: Trial) -> TrialOutcome:
    """Trial 1 is the end of every worker that runs it."""
    if trial.number == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return answer(work, trial)


def refuses(work: TrialWork, trial: Trial) -> TrialOutcome:
    """A coded error in place of an outcome."""
    raise FuselineError("E0105", "malformed", node=f"{trial.number}")


def elsewhere(work: TrialWork, trial: Trial) -> TrialOutcome:
    """An outcome of another kind of machine than the worker said it is."""
    return TrialOutcome(number=trial.number, state="complete", machine="another")
