"""optuna-dashboard shows a study that a search left, where that package is installed."""

from __future__ import annotations

import json
import os
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

import pytest

from fuseline.tuning.study_file import opened
from tests.unit.tuning.landscape import LandscapeEvaluator, searched

dashboard: Any = pytest.importorskip("optuna_dashboard")


class _Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the test's own requests."""
        del format, args


@contextmanager
def _served(file: Path) -> Generator[str]:
    """The address of a dashboard of the studies in `file`."""
    server = make_server("127.0.0.1", 0, dashboard.wsgi(opened(file)), handler_class=_Quiet)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _asked(address: str) -> Any:
    with urllib.request.urlopen(address, timeout=120) as answer:
        return json.load(answer)


@pytest.mark.skipif(os.name != "posix", reason="studies are kept by flock")
def test_the_dashboard_has_all_trials_of_a_study(tmp_path: Path):
    result = searched(LandscapeEvaluator(), tmp_path / "study.db", trials=8)
    with _served(tmp_path / "study.db") as address:
        (summary,) = _asked(f"{address}/api/studies")["study_summaries"]
        study = _asked(f"{address}/api/studies/{summary['study_id']}?after=0")
    assert summary["directions"] == ["minimize"] and len(study["trials"]) == len(result.trials.trials) == 8
    states = {"complete": "Complete", "pruned": "Pruned", "failed": "Fail", "wrong": "Fail"}
    for shown, told in zip(study["trials"], result.trials.trials, strict=True):
        chosen = {one["name"]: one["param_external_value"] for one in shown["params"]}
        assert shown["state"] == states[told.outcome.state]
        assert told.configuration.items() <= chosen.items()
