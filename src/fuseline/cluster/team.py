"""The workers of a cluster that take part in some work, as they come and go."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from distributed import Client
from distributed.comm.core import CommClosedError

from fuseline.cluster.admission import Wanted, WorkerFacts, chosen_kind, counted, facts_of, refusal
from fuseline.cluster.worker_facts import worker_facts
from fuseline.errors import FuselineError

ANSWER_SECONDS = 60.0
"""What a scheduler or a worker may take to answer a question, on a machine that may be busy."""

_REFUSED_SECONDS = 5.0
"""After which others than those who are there, and refused, are not waited for."""
_PAUSE_SECONDS = 0.2


class Team:
    """Workers that take part, by address.

    Args:
        client: of the scheduler. asked: what is asked of them. kind: the kind of machine, or a part of its name; the
        most frequent if None. prepare: called with the address of each one before it takes part; it may raise
        FuselineError, and then the worker does not. notice: is told in lines who does not take part, and why. patience:
        seconds for which none at all may be there.
    """

    def __init__(
        self,
        client: Client,
        asked: Wanted,
        *,
        kind: str | None = None,
        prepare: Callable[[str], object] = lambda address: None,
        notice: Callable[[str], object] = lambda line: None,
        patience: float = ANSWER_SECONDS,
    ) -> None:
        self.client, self.asked, self.kind = client, asked, ""
        self.members: dict[str, WorkerFacts] = {}
        self._refused: dict[str, str] = {}
        self._asked_kind, self._prepare, self._notice, self._patience = kind, prepare, notice, patience
        self._alone_since = time.monotonic()
        self._address = str(client.scheduler.address) if client.scheduler is not None else ""

    @property
    def capacity(self) -> int:
        """How many pieces of work they do at a time: one each, and on each host as many as its cores have room for."""
        hosts = Counter(facts.host for facts in self.members.values())
        room = {facts.host: max(1, facts.cores // self.asked.cores) for facts in self.members.values()}
        return sum(min(count, room[host]) for host, count in hosts.items())

    def gather(self) -> None:
        """Wait until somebody takes part. Raises FuselineError as `refresh` does, and E1102 soon where those who are
        there are all refused."""
        self.refresh()
        while not self.members:
            if self._refused and time.monotonic() - self._alone_since > min(_REFUSED_SECONDS, self._patience):
                raise self._nobody()
            time.sleep(_PAUSE_SECONDS)
            self.refresh()

    def refresh(self) -> None:
        """See who left and who came. Raises FuselineError: E1101 where the scheduler is gone, E1102 where nobody has
        taken part for `patience` seconds."""
        there = self._there()
        self.members = {address: facts for address, facts in self.members.items() if address in there}
        self._refused = {address: why for address, why in self._refused.items() if address in there}
        new = [address for address in there if address not in self.members and address not in self._refused]
        if new:
            self._admit(new)
        if self.members:
            self._alone_since = time.monotonic()
        elif time.monotonic() - self._alone_since > self._patience:
            raise self._nobody()

    def forget(self, address: str) -> None:
        """A worker is to be asked and prepared again before it takes part."""
        self.members.pop(address, None)

    def ask(self, function: Callable[..., Any], *arguments: Any, workers: list[str]) -> dict[str, Any]:
        """What `function` answers on each of `workers`; an exception in place of an answer. Raises E1101 where the
        scheduler is gone."""
        return self._of_scheduler(lambda: self.client.run(function, *arguments, workers=workers, on_error="return"))

    def caller(self, address: str) -> Callable[..., Any]:
        """Calls a function with arguments on one worker: what it returns, or the exception that it raised."""

        def call(function: Callable[..., Any], *arguments: Any) -> Any:
            answers = self.ask(function, *arguments, workers=[address])
            return answers.get(address, ConnectionError("the worker has left"))

        return call

    # who is there -----------------------------------------------------------------------------------------------------

    def _there(self) -> list[str]:
        scheduler = self.client.scheduler
        if scheduler is None or self.client.status != "running":
            raise self._lost()
        found: dict[str, int] = self._of_scheduler(
            lambda: self.client.sync(scheduler.ncores, workers=None, callback_timeout=ANSWER_SECONDS)
        )
        return list(found)

    def _of_scheduler(self, question: Callable[[], Any]) -> Any:
        try:
            return question()
        except (OSError, TimeoutError, CommClosedError) as problem:
            raise self._lost() from problem

    def _lost(self) -> FuselineError:
        hint = "start it again; what was finished is kept"
        return FuselineError("E1101", "the scheduler was lost in the middle of the work", node=self._address, hint=hint)

    def _nobody(self) -> FuselineError:
        lines = counted(self._refused)
        message = "; ".join(lines) if lines else "the scheduler has no workers"
        hint = "install the same fuseline for all of them" if lines else f"start some: dask worker {self._address}"
        return FuselineError("E1102", message, node=self._address, hint=f"{hint} --nthreads 1" if not lines else hint)

    # who takes part ---------------------------------------------------------------------------------------------------

    def _admit(self, addresses: list[str]) -> None:
        answers = self.ask(worker_facts, workers=addresses)
        fit, refused = self._judged({address: facts_of(answer) for address, answer in answers.items()})
        if fit and not self.kind:
            kinds = [facts.kind for facts in fit.values()]
            self.kind = chosen_kind(kinds, self._asked_kind, self.asked.client.kind)
        for address, facts in fit.items():
            why = self._unfit(address, facts)
            if why is None:
                self.members[address] = facts
            else:
                refused[address] = why
        self._refused |= refused
        for line in counted(refused):
            self._notice(line)

    def _judged(self, found: Mapping[str, WorkerFacts | str]) -> tuple[dict[str, WorkerFacts], dict[str, str]]:
        fit: dict[str, WorkerFacts] = {}
        refused: dict[str, str] = {}
        for address, facts in found.items():
            why = facts if isinstance(facts, str) else refusal(facts, self.asked)
            if why is not None:
                refused[address] = why
            elif isinstance(facts, WorkerFacts):
                fit[address] = facts
        return fit, refused

    def _unfit(self, address: str, facts: WorkerFacts) -> str | None:
        if facts.kind != self.kind:
            return f"another kind of machine ({facts.kind}, not {self.kind})"
        try:
            self._prepare(address)
        except FuselineError as error:
            if error.code == "E1101":
                raise
            return f"{error.code}: {error.message}"
        return None
