"""What all tests share: hypothesis without deadlines (machines are shared and noisy), the same examples in every CI
run, random numbers of each test's own (`tests/draws.py`), onnxruntime hidden."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from fuseline.gc_pause import gc_paused
from tests import cpu_seconds, draws, shares

# A test compiles what it says, and never finds what an earlier one (or another state of the code under a patch) made.
os.environ.setdefault("FUSELINE_NO_CACHE", "programs")

settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", parent=settings.get_profile("default"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")


def pytest_report_header() -> str:
    return f"random numbers: {draws.VARIABLE}={draws.SEED}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The seed once more where something fails, since `-q` leaves out the header."""
    if terminalreporter.stats.keys() & {"failed", "error"}:
        terminalreporter.write_line(pytest_report_header())


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Without the garbage collector: thousands of tests are made, all of which stay (a fifth of the time)."""
    with gc_paused():
        return (yield)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--keep-cpu-seconds", action="store_true", help="run all tests, and keep what each takes")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--keep-cpu-seconds"):
        config.pluginmanager.register(cpu_seconds.Meter(keeps=not hasattr(config, "workerinput")))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the share of a default session (`tests/shares.py`); all tests where slow ones are asked for as well, or the
    file or test by its name."""
    by_name = any(not Path(config.invocation_params.dir, name.partition("::")[0]).is_dir() for name in config.args)
    if by_name or "not slow" not in config.option.markexpr or config.getoption("--keep-cpu-seconds"):
        return
    seconds = cpu_seconds.kept()
    drawn = [shares.is_drawn(item.nodeid, seconds) for item in items]
    config.hook.pytest_deselected(items=[item for item, takes_part in zip(items, drawn, strict=True) if not takes_part])
    items[:] = [item for item, takes_part in zip(items, drawn, strict=True) if takes_part]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    draws.start(item.nodeid)


@pytest.fixture
def hide_onnxruntime(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Call it, and until the test ends onnxruntime cannot be imported. No host operator that was made ready before is
    kept, nor, afterwards, one that was made meanwhile."""
    from fuseline.interop import onnx_host

    def hide() -> None:
        for name in ["onnxruntime", *(name for name in sys.modules if name.startswith("onnxruntime."))]:
            monkeypatch.setitem(sys.modules, name, None)
        onnx_host.forget()

    yield hide
    onnx_host.forget()
