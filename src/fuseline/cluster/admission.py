"""Which workers take part: those with the same fuseline and Python, a CPU that the work is for, and one kind of
machine. Who does not is counted, with the reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from fuseline.cluster.worker_facts import worker_facts
from fuseline.errors import FuselineError

ABSENT = "no fuseline there, or one without a part for clusters"
UNREADABLE = "another fuseline there"


class WorkerFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker says of itself.

    Attributes:
        version: of fuseline. sources: digest of its sources. python: major and minor. packages: versions of packages
        that decide about code. machine: instruction set as in a target triple. features: of the CPU, LLVM's names.
        isa: the best that `cpu` has for it, empty for none. kind: the kind of machine (`tuning.machine_kind`). host:
        where it runs. process: its number there. cores: how many it may use.
    """

    version: str
    sources: str
    python: str
    packages: dict[str, str]
    machine: str
    features: list[str]
    isa: str
    kind: str
    host: str
    process: int
    cores: int


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What workers are asked for: facts like those of `client`; on a target with code a CPU that runs it, either of the
    ISA `isa`, or with the `flags` that a named ISA needs."""

    client: WorkerFacts
    isa: str = ""
    machine: str = ""
    features: tuple[str, ...] = ()
    cores: int = 1


def wanted(target: str, cores: int = 1) -> Wanted:
    """What is asked of workers that compile for `target`, with work that takes `cores` cores. Raises E0501 for an ISA
    that there is not."""
    client = msgspec.convert(worker_facts(), WorkerFacts)
    family, _, variant = target.partition(":")
    if family != "cpu":
        return Wanted(client=client, cores=cores)
    if not variant or variant.endswith(".toml"):
        return Wanted(client=client, isa=client.isa, machine=client.machine, cores=cores)
    from fuseline.targets.cpu.isa.detection import machine

    named = machine(variant)
    return Wanted(client=client, machine=named.triple.partition("-")[0], features=named.needs, cores=cores)


def facts_of(answer: Any) -> WorkerFacts | str:
    """What a worker answered, or why it cannot take part: an exception in place of it, or one of another form."""
    if isinstance(answer, BaseException):
        if "ModuleNotFoundError" in repr(answer):  # Dask answers with its text where the question cannot be read
            return ABSENT
        return f"{UNREADABLE}: {type(answer).__name__}"
    try:
        return msgspec.convert(answer, WorkerFacts)
    except msgspec.ValidationError:
        return UNREADABLE


def refusal(facts: WorkerFacts, asked: Wanted) -> str | None:
    """Why a worker cannot take part; None where it can."""
    ours = asked.client
    if facts.version != ours.version:
        return f"fuseline {facts.version} there, {ours.version} here"
    if facts.sources != ours.sources:
        return f"fuseline {facts.version} of other sources there ({facts.sources}, here {ours.sources})"
    if facts.python != ours.python:
        return f"Python {facts.python} there, {ours.python} here"
    for name, version in ours.packages.items():
        if facts.packages.get(name) != version:
            return f"{name} {facts.packages.get(name) or 'missing'} there, {version} here"
    return _cpu_refusal(facts, asked)


def _cpu_refusal(facts: WorkerFacts, asked: Wanted) -> str | None:
    if asked.machine and facts.machine != asked.machine:
        return f"a CPU of another instruction set: {facts.machine}, not {asked.machine}"
    if asked.isa and facts.isa != asked.isa:
        return f"a CPU of another instruction set: {facts.isa or 'none of ours'}, not {asked.isa}"
    missing = _lacking(facts, asked.features)
    return f"a CPU of another instruction set: without {', '.join(missing)}" if missing else None


def _lacking(facts: WorkerFacts, needed: Iterable[str]) -> list[str]:
    from fuseline.runtime.cpu import features_from_cpuinfo

    names = features_from_cpuinfo(f"flags : {' '.join(needed)}\n")
    return sorted(names - set(facts.features))


def chosen_kind(kinds: Iterable[str], asked: str | None, here: str) -> str:
    """The kind of machine that takes part: `asked` (a part of its name that fits one), or the most frequent; this
    machine's where that is one of them, else the first by name. Raises E1102 where `asked` fits none, or several."""
    counts = Counter(kinds)
    if asked is not None:
        return _the_one(asked, sorted(counts))
    most = max(counts.values())
    return min((kind for kind in counts if counts[kind] == most), key=lambda kind: (kind != here, kind))


def _the_one(asked: str, kinds: list[str]) -> str:
    fitting = [asked] if asked in kinds else [kind for kind in kinds if asked in kind]
    if len(fitting) == 1:
        return fitting[0]
    message = f"{len(fitting) or 'no'} kinds of machine fit {asked!r}"
    raise FuselineError("E1102", message, node="--kind", hint=f"there are: {'; '.join(kinds) or 'none'}")


def counted(reasons: Mapping[str, str]) -> list[str]:
    """Reasons by worker, as lines with a count each, the most frequent first.

    >>> counted({"a": "Python 3.12 there", "b": "Python 3.12 there", "c": "no fuseline there"})
    ['2 workers do not take part: Python 3.12 there', '1 worker does not take part: no fuseline there']
    """
    return [
        f"{count} worker{'s do' if count > 1 else ' does'} not take part: {reason}"
        for reason, count in Counter(reasons.values()).most_common()
    ]
