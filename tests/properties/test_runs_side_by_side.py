"""Compiled programs under load: many threads, each with sizes and numbers of its own, refused feeds, futures that are
cancelled and memory that is given back in between. Every answer is that of a run that is alone, bit for bit."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError, ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
import pytest

import fuseline
from fuseline.compiled_model import CompiledModel
from fuseline.errors import FuselineError
from fuseline.runtime import Session
from fuseline.runtime.background import in_background
from fuseline.runtime.processors import allowed_processors
from tests.graphs.onnx_text import onnx_model
from tests.properties.near_duplicates import WIDTH, Layers, attention, feeds, near_duplicates, product, scaled

CALLERS, RUNS = 8, 24

Feeds = Mapping[str, Any]


def _layers(threads: int) -> CompiledModel:
    """Rows of any number, shared out however little there is to do."""
    layers = Layers(np.random.default_rng(7))
    x = "x"
    for make in (product, attention, scaled, product, attention):
        x = make(layers, x)
    text = f"(float[n, {WIDTH}] x) => ({x}) {{ {chr(10).join(layers.lines)} }}"
    return _eager(fuseline.compile(onnx_model(text, layers.weights), threads=threads))


def _chosen_rows(threads: int) -> CompiledModel:
    """What runs in stages: how many rows come out, the numbers say."""
    text = f"""(float[n, {WIDTH}] x, bool[n] kept) => (y, z) {{
        s = Mul(x, w)  t = Compress<axis = 0>(s, kept)  u = Exp(t)  y = Add(u, t)  z = Neg(s) }}"""
    w = np.random.default_rng(8).standard_normal(WIDTH).astype(np.float32)
    return _eager(fuseline.compile(onnx_model(text, w=w), threads=threads))


def _eager(program: CompiledModel) -> CompiledModel:
    artifact = program.session.artifact
    eager = artifact._replace(program=artifact.program._replace(serial_below_ns=0, split_above_ns=0))
    return CompiledModel(Session(eager))


def _session_of(program: CompiledModel) -> Session:
    assert isinstance(program.session, Session)
    return program.session


def _rows(rng: np.random.Generator) -> Feeds:
    return {"x": rng.standard_normal((int(rng.integers(1, 200)), WIDTH), dtype=np.float32)}


def _rows_and_choice(rng: np.random.Generator) -> Feeds:
    given = _rows(rng)
    return {**given, "kept": rng.random(len(given["x"])) < 0.5}


MODELS: Mapping[str, tuple[Callable[[int], CompiledModel], Callable[[np.random.Generator], Feeds]]] = {
    "layers": (_layers, _rows),
    "stages": (_chosen_rows, _rows_and_choice),
}


@cache
def _program(name: str, threads: int) -> CompiledModel:
    return MODELS[name][0](threads)


def _refused(rng: np.random.Generator, given: Feeds) -> tuple[Feeds, str]:
    """Feeds that are wrong in one of several ways, and how."""
    x = given["x"]
    return [
        ({**given, "x": x[:, 1:]}, "E0203"),
        ({**given, "x": x.astype(np.int64)}, "E0204"),
        ({name: array for name, array in given.items() if name != "x"}, "E0202"),
        ({**given, "other": x}, "E0201"),
    ][int(rng.integers(4))]


class _Caller:
    """One of several threads: what it does, drawn at random, and how often the answer was wrong."""

    def __init__(self, program: CompiledModel, draw: Callable[[np.random.Generator], Feeds], seed: int) -> None:
        self.program, self.rng, self.wrong = program, np.random.default_rng(seed), list[str]()
        self.given = [draw(self.rng) for _ in range(5)]
        self.expected = [program.run(given) for given in self.given]

    def work(self) -> None:
        for _ in range(RUNS):
            [self._run, self._run_twice_behind, self._refuse, self._cancel, self._release][self.rng.integers(5)]()

    def _check(self, number: int, found: Mapping[str, Any]) -> None:
        for name, expected in self.expected[number].items():
            if not np.array_equal(found[name], expected, equal_nan=True):
                self.wrong.append(f"{name} of {number}")

    def _any(self) -> int:
        return int(self.rng.integers(len(self.given)))

    def _run(self) -> None:
        number = self._any()
        self._check(number, self.program.run(self.given[number]))

    def _run_twice_behind(self) -> None:
        numbers = self._any(), self._any()
        for number, future in [(number, self.program.run_async(self.given[number])) for number in numbers]:
            self._check(number, future.result(60))

    def _refuse(self) -> None:
        given, code = _refused(self.rng, self.given[self._any()])
        with pytest.raises(FuselineError) as here:
            self.program.run(given)
        behind = self.program.run_async(given).exception(60)
        found = [here.value.code, getattr(behind, "code", repr(behind))]
        self.wrong += [f"{one} in place of {code}" for one in found if one != code]

    def _cancel(self) -> None:
        """A future that has not begun is never run; one that has ends as if nobody had asked."""
        number = self._any()
        future = self.program.run_async(self.given[number])
        if future.cancel():
            with pytest.raises(CancelledError):
                future.result()
        else:
            self._check(number, future.result(60))

    def _release(self) -> None:
        _session_of(self.program).release_memory()


@pytest.fixture(params=["own", "many"])
def processors(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many runs may go side by side: as many as this machine has processors, or as many as a larger one."""
    if request.param == "many":
        for module in ("session", "teams"):
            monkeypatch.setattr(f"fuseline.runtime.{module}.allowed_processors", lambda: list(range(12)))
        return 12
    return len(allowed_processors())


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("name", MODELS)
def test_many_callers(name: str, threads: int, processors: int) -> None:
    """With many processors three runs have four threads each, and a team each, or more of them fewer."""
    program, random = CompiledModel(Session(_program(name, threads).session.artifact)), np.random.default_rng()
    callers = [_Caller(program, MODELS[name][1], int(random.integers(1 << 30))) for _ in range(CALLERS)]
    assert any(not np.array_equal(one, callers[1].expected[0][name]) for name, one in callers[0].expected[0].items())
    with ThreadPoolExecutor(CALLERS) as pool:
        for done in [pool.submit(caller.work) for caller in callers]:
            done.result(120)
    assert [caller.wrong for caller in callers] == [[]] * CALLERS
    idle = _session_of(program)._pool.idle  # pyright: ignore[reportPrivateUsage]
    program.run(callers[0].given[0])
    assert 1 <= len(idle) <= processors
    _session_of(program).release_memory()
    assert not idle


def test_programs_of_their_own_side_by_side() -> None:
    """Several sessions share the threads of the process, and nothing else."""
    programs = [_program(name, threads) for name in MODELS for threads in (1, 4)]
    draws = [MODELS[name][1] for name in MODELS for _ in range(2)]
    callers = [_Caller(program, draw, seed) for seed, (program, draw) in enumerate(zip(programs, draws, strict=True))]
    with ThreadPoolExecutor(len(callers)) as pool:
        for done in [pool.submit(caller.work) for caller in callers]:
            done.result(120)
    assert [caller.wrong for caller in callers] == [[]] * len(callers)


def test_a_program_that_nobody_keeps_ends_its_runs_first() -> None:
    program, rng = _layers(2), np.random.default_rng()
    given = [_rows(rng) for _ in range(12)]
    expected = [program.run(one) for one in given]
    session = weakref.ref(program.session)
    futures = [program.run_async(one) for one in given]
    del program
    gc.collect()
    while futures:
        wanted = expected.pop()
        for name, array in futures.pop().result(60).items():
            np.testing.assert_array_equal(array, wanted[name])
    in_background(gc.collect).result(60)
    assert session() is None


def test_what_is_cancelled_in_time_never_runs() -> None:
    program, rng = _program("layers", 2), np.random.default_rng()
    go_on, given = threading.Event(), _rows(rng)
    busy = [in_background(go_on.wait, 60) for _ in allowed_processors()]
    futures = [program.run_async(given) for _ in range(6)]
    assert all(future.cancel() for future in futures[::2])
    go_on.set()
    assert all(one.result(60) for one in busy)
    expected = program.run(given)
    for future in futures[1::2]:
        for name, array in future.result(60).items():
            np.testing.assert_array_equal(array, expected[name])
    assert all(future.cancelled() for future in futures[::2])


@pytest.mark.parametrize("dedup", ["constants", "shapes"])
def test_many_callers_of_executables_that_are_shared(dedup: str) -> None:
    random = np.random.default_rng()
    program = _eager(fuseline.compile(near_duplicates(random, "n"), threads=2, dedup=dedup))
    callers = [_Caller(program, lambda rng: feeds(rng, int(rng.integers(1, 90))), seed) for seed in range(CALLERS)]
    with ThreadPoolExecutor(CALLERS) as pool:
        for done in [pool.submit(caller.work) for caller in callers]:
            done.result(120)
    assert [caller.wrong for caller in callers] == [[]] * CALLERS
