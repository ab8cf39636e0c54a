"""The same work on many models, on the workers of a cluster: answers in the order of the models, an error in place of
one that fails.

    a.onnx ──> worker 1 ──┐
    b.onnx ──> worker 2   ├──> a, b, c
    c.onnx ──> worker 1 ──┘
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from fuseline.border import coded
from fuseline.cluster.admission import wanted
from fuseline.cluster.connect import connected
from fuseline.cluster.cores import held_cores, pinned
from fuseline.cluster.jobs import Done, Jobs
from fuseline.cluster.sending import send
from fuseline.cluster.shipment import Shipment, model_shipment
from fuseline.cluster.shipped_options import ShippedOptions, here, shipped_options
from fuseline.cluster.team import Team
from fuseline.errors import FuselineError

R = TypeVar("R")


class ModelTask(msgspec.Struct, frozen=True):
    """A model, the options of its compile, and how many cores the work holds for itself (0: none)."""

    model: Shipment
    options: ShippedOptions
    hold: int = 0


@dataclass(frozen=True, slots=True)
class Answer(Generic[R]):
    """Of the model called `name`: the result, or the error; `host`: where it was made, empty for nowhere."""

    name: str
    result: R | None = None
    error: FuselineError | None = None
    host: str = ""


Finished = Callable[[int, int, Answer[Any]], object]
"""Is told how many answers there are, of how many, and the newest; in the order in which they come."""


def on_workers(
    scheduler: str,
    files: Mapping[str, Path],
    options: Mapping[str, Any],
    function: Callable[..., R],
    arguments: tuple[Any, ...] = (),
    *,
    hold: int = 0,
    kind: str | None = None,
    notice: Callable[[str], object] = lambda line: None,
    finished: Finished = lambda count, total, answer: None,
) -> Iterator[Answer[R]]:
    """`function(path, options, *arguments)` for each of `files`, on workers, in the order of `files`.

    Args:
        options: of a compile; files that they name go along. function: importable on workers. hold: cores that each
        call holds for itself, for work that is timed. kind: the kind of machine, or a part of its name. notice: is told
        who does not take part.

    Once work is under way, whatever happens to the cluster is the answer of the models that it leaves. Raises
    FuselineError before that: E1101 where no scheduler answers, E1102 where no worker can take part.
    """
    sent = shipped_options(options)
    with connected(scheduler, cores=max(1, hold)) as client:
        asked = wanted(str(options.get("target", "cpu")), max(1, hold))
        team = Team(client, asked, kind=kind, notice=notice)
        jobs: Jobs[R] = Jobs(team, supply=lambda address, taken: _supply(team.caller(address), taken[0]))
        team.gather()
        names = list(files)
        ready: dict[int, Answer[R]] = {}
        for number, path in enumerate(files.values()):
            try:
                task = ModelTask(model_shipment(path), sent, hold)
                jobs.submit(number, _done_here, task, function, arguments)
            except FuselineError as error:
                ready[number] = Answer(names[number], error=error)
        try:
            yield from _in_order(names, jobs, team, ready, finished)
        finally:
            jobs.cancel()


def _in_order(
    names: list[str], jobs: Jobs[R], team: Team, ready: dict[int, Answer[R]], finished: Finished
) -> Iterator[Answer[R]]:
    total, count = len(names), 0
    for answer in ready.values():
        count += 1
        finished(count, total, answer)
    for number in range(total):
        while number not in ready:
            done = _next(jobs, number)
            host = team.members[done.worker].host if done.worker in team.members else ""
            ready[done.number] = Answer(names[done.number], done.result, done.error, host)
            count += 1
            finished(count, total, ready[done.number])
        yield ready.pop(number)


def _next(jobs: Jobs[R], number: int) -> Done[R]:
    """The next answer; where the cluster is gone, that is the answer of the model `number`."""
    try:
        done = jobs.done()
    except FuselineError as error:
        return Done(number, "", error=error)
    if done is None:
        raise AssertionError(f"nobody works on model {number}")
    return done


def _supply(call: Callable[..., Any], task: ModelTask) -> None:
    for one in (task.model, *task.options.shipments()):
        send(one, call)


def _done_here(task: ModelTask, function: Callable[..., R], arguments: tuple[Any, ...]) -> R:
    """On the worker: the work on files that are here."""
    path, options = Path(here(task.model)), task.options.here()
    try:
        if not task.hold:
            return function(path, options, *arguments)
        with held_cores(task.hold) as processors, pinned(processors):
            return function(path, options, *arguments)
    except Exception as problem:  # noqa: BLE001 - whatever ends one model, it is its answer
        error = coded(problem, "work on a worker")
        if error.node == str(path):  # as the sender calls it
            error.node = str(Path(task.model.folder) / task.model.main)
        raise error from (None if error is problem else problem)  # a cause of itself is followed without end
