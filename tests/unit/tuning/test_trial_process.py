"""The process of trials: it ends with whoever started it, and says how it ended itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fuseline.errors import FuselineError
from fuseline.tuning.setting import SearchSetting
from fuseline.tuning.trial_process import TrialProcess
from tests.unit.tuning.realisations import plain

PATIENCE = 200.0

PARENT = """
import sys, time
sys.path[:] = {path!r}
from pathlib import Path
from fuseline.tuning.setting import SearchSetting
from fuseline.tuning.trial_process import TrialProcess
from tests.unit.tuning.realisations import plain
process = TrialProcess(SearchSetting(model="m.onnx", options={{}}, knobs=()), plain, Path("."))
sys.stdout.write(f"{{process.pid}}\\n")
sys.stdout.flush()
time.sleep(600)
"""


def _setting() -> SearchSetting:
    return SearchSetting(model="none.onnx", options={}, knobs=())


def _gone(pid: int) -> bool:
    """Whether the process ended; one that nobody waited for yet has ended, too."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_it_ends_when_the_search_was_killed():
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT.format(path=sys.path)], stdout=subprocess.PIPE, start_new_session=True
    )
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    parent.stdout.close()
    end = time.monotonic() + PATIENCE
    while not _gone(pid) and time.monotonic() < end:
        time.sleep(0.05)
    assert _gone(pid)


def test_how_it_ended_is_said(tmp_path: Path):
    process = TrialProcess(_setting(), plain, tmp_path)
    os.kill(process.pid, signal.SIGKILL)
    process.request("run", None)
    assert process.ready(PATIENCE)
    with pytest.raises(FuselineError, match="SIGKILL") as caught:
        process.answer("trial 5")
    assert (caught.value.code, caught.value.node) == ("E0604", "trial 5")
    process.end()


def test_what_it_said_last_is_the_hint(tmp_path: Path):
    process = TrialProcess(_setting(), plain, tmp_path)
    process.request("no_such_method")
    assert process.ready(PATIENCE)
    with pytest.raises(FuselineError) as caught:
        process.answer("trial 5")
    assert caught.value.hint is not None and "no_such_method" in caught.value.hint
    process.end()


def test_what_cannot_travel_is_refused_before_a_process_is_started(tmp_path: Path):
    with pytest.raises(AttributeError):
        TrialProcess(_setting(), lambda setting, configuration, folder: {}, tmp_path)
