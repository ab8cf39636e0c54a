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
from tests import draws

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


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of tests `sampled(n)` leave one n-th, which the session's seed draws; all of them where slow tests are asked for
    as well, or the file or test by its name."""
    by_name = any(not Path(config.invocation_params.dir, name.partition("::")[0]).is_dir() for name in config.args)
    if by_name or "not slow" not in config.option.markexpr:
        return
    left_out = {item: _is_left_out(item) for item in items}
    config.hook.pytest_deselected(items=[item for item in items if left_out[item]])
    items[:] = [item for item in items if not left_out[item]]


def _is_left_out(item: pytest.Item) -> bool:
    mark = item.get_closest_marker("sampled")
    return mark is not None and draws.generator(item.nodeid).integers(mark.args[0]) != 0


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
