"""Measuring the dispatches of models, and keeping what is measured as it comes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from fuseline.cache.digests import file_digest
from fuseline.errors import FuselineError
from fuseline.report.records import CompileRecord, DispatchRecord
from fuseline.runtime import Session
from fuseline.tuning.fit.records import DispatchSample, ProgramKey, ProgramSamples, read_records, write_records
from fuseline.tuning.machine_kind import machine_kind
from fuseline.verify.dispatch_times import program_run
from fuseline.verify.least_dispatch_times import LeastTime, least_dispatch_seconds
from fuseline.verify.model_feeds import FedProgram, complete_feeds, default_sizes, model_hints


class Program(FedProgram, Protocol):
    """What is asked of a compiled model."""

    @property
    def session(self) -> Any:
        """What runs it."""
        ...

    @property
    def record(self) -> CompileRecord:
        """What the compile left."""
        ...


Compile = Callable[..., Program]
"""`fuseline.compile`: a model and keyword options to a program."""

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Collection:
    """How models are measured: `threads` and `fusions` are the compiles of each, `rounds` how often each is measured,
    apart in time, `seconds_each` how long each dispatch in each round."""

    compile: Compile
    target: str
    threads: Sequence[int] = (1,)
    fusions: Sequence[str] = ("default",)
    rounds: int = 1
    seconds_each: float = 0.05
    progress: Progress = lambda phase, done, total: None

    def collect(self, models: Sequence[Path], path: Path) -> list[ProgramSamples]:
        """All records of `path`, with those that were missing of `models`; each is written as soon as it is measured.

        Raises FuselineError: E0101 for a model that is not there, E0501 for a file that holds other things and for a
        target without code, and what a compile raises.
        """
        keys = {model: _digest(model) for model in models}
        found = read_records(path)
        wanted = list(self._missing(keys, found))
        for done, (model, key, number) in enumerate(wanted):
            self.progress(f"measuring {model.name}, {key.threads} threads", done, len(wanted))
            found = [*read_records(path), self.measured(model, key, number)]
            write_records(path, found)
        return found

    def _missing(
        self, digests: Mapping[Path, str], found: Sequence[ProgramSamples]
    ) -> Iterator[tuple[Path, ProgramKey, int]]:
        """Rounds are outermost: what disturbs the machine for a while disturbs one round of a few models."""
        have = {(record.key, record.round) for record in found}
        machine = machine_kind()
        for number in range(self.rounds):
            for model, digest in digests.items():
                for threads in self.threads:
                    for fusion in self.fusions:
                        key = ProgramKey(machine, digest, self.target, threads, fusion)
                        if (key, number) not in have:
                            yield model, key, number

    def measured(self, model: Path, key: ProgramKey, number: int) -> ProgramSamples:
        """One compile of `model`, measured once."""
        program = self._compiled(model, key)
        if not isinstance(program.session, Session):
            hint = "use --target cpu, or a description of one (cpu:FILE)"
            raise FuselineError("E0501", f"nothing can be measured for {self.target}: it has no code", hint=hint)
        feeds = complete_feeds(program, {}, model_hints(model), 0)
        artifact = program_run(program.session.artifact, feeds, key.threads)
        ordinary = artifact is not program.session.artifact.fallback  # what is on record is what ordinary sizes run
        times = least_dispatch_seconds(artifact, feeds, key.threads, self.seconds_each) if ordinary else []
        return ProgramSamples(
            machine=key.machine, model=model.name, digest=key.digest, target=key.target, threads=key.threads,
            fusion=key.fusion, round=number, dispatches=tuple(samples(program.record, times)),
        )  # fmt: skip

    def _compiled(self, model: Path, key: ProgramKey) -> Program:
        """The model for the sizes that it is measured with: what it has to do is then known to the compiler."""
        program = self.compile(model, target=self.target, threads=key.threads, fusion=key.fusion)
        if not program.symbols:
            return program
        sizes = {**default_sizes(program), **model_hints(model).sizes}
        given = {name: sizes[name] for name in program.symbols}
        return self.compile(model, target=self.target, threads=key.threads, fusion=key.fusion, shapes=given)


def samples(record: CompileRecord, times: Sequence[LeastTime]) -> Iterator[DispatchSample]:
    """The times with the work on record: launches of one executable keep their order. What is not on record (a
    fallback, a branch) is left out."""
    waiting: dict[str, list[DispatchRecord]] = {}
    for dispatch in record.dispatches:
        waiting.setdefault(dispatch.executable, []).append(dispatch)
    for time in times:
        if waiting.get(time.label):
            known = waiting[time.label].pop(0)
            yield DispatchSample(
                name=known.name, executable=known.executable, work=known.work, share=known.share, seconds=time.seconds
            )


def _digest(model: Path) -> str:
    try:
        return file_digest(model)
    except (OSError, ValueError) as error:
        raise FuselineError("E0101", "no such file", node=str(model), hint="check the path") from error
