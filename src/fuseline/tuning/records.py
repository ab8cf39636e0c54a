"""Tuning records: what searches found of classes of kernels, kept in the user's cache and shared among models.

    (machine kind, target, threads, numerics, class)  ->  choice, ratio with its interval, seconds, model, version, date

They lie in one SQLite file, so that any number of processes may write at once; exported ones are a JSON document. Each
search of a model replaces what an earlier one of the same model said of a class. `default` is a choice, too: that the
others were no faster.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from fuseline.cache.digests import file_digest
from fuseline.cache.folder import cache_folder, disabled, private_folder
from fuseline.errors import FuselineError
from fuseline.ir.kernel_choice import DEFAULT, Asked, KernelChoices, class_id
from fuseline.runtime.files import write_bytes
from fuseline.runtime.processors import allowed_processors
from fuseline.tuning.machine_kind import machine_kind
from fuseline.tuning.trial import Interval
from fuseline.version import VERSION

KIND, FILE = "tuning", "records.sqlite"
"""The folder of the cache, and the file in it."""

SCHEMA = 1
"""Of the file, and of exported documents."""

WAIT_SECONDS = 30.0
"""For another process that writes."""

T = TypeVar("T")


class TuningRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a search confirmed of a class of kernels.

    Attributes:
        machine: the kind of machine (`tuning.machine_kind`). target, threads, numerics: of the compile, the target as
        `target_name` has it. kernel: the class. choice: as `ir.kernel_choice` writes it. ratio: of times of whole runs
        of the model, with all that the search kept / by default, as it was confirmed. gain: the share of a run that
        this choice gained, as the search measured it. seconds: of a run. model: digest of its content. version: of
        fuseline.
        generator: of its kernels (`generator_version`). date: ISO 8601, UTC.
    """

    machine: str
    target: str
    threads: int
    numerics: str
    kernel: str
    choice: str
    ratio: Interval
    gain: float
    seconds: float
    model: str
    version: str
    generator: str
    date: str


_FIELDS = ("machine", "target", "threads", "numerics", "kernel", "model")
"""What tells records apart."""

_TABLE = """
create table if not exists records (
    machine text, target text, threads integer, numerics text, kernel text, model text, record blob not null,
    primary key (machine, target, threads, numerics, kernel, model)
)"""


class CompileKind(NamedTuple):
    """What of a compile records hold for: the target as `target_name` has it, threads and numerics."""

    target: str
    threads: int
    numerics: str


def compile_kind(target: str = "cpu", threads: int | None = None, numerics: str = "default", **_: Any) -> CompileKind:
    """That of a compile with these arguments of `fuseline.compile`; others say nothing of it. Raises OSError for a
    description that cannot be read."""
    return CompileKind(target_name(target), threads or len(allowed_processors()), numerics)


def found_here(
    kernel: str, choice: str, ratio: Interval, *, gain: float, seconds: float, model: str | Path, kind: CompileKind
) -> TuningRecord:
    """What was found on this machine just now, of the file `model`. Raises OSError for a file that cannot be read."""
    return TuningRecord(
        machine=machine_kind(),
        target=kind.target,
        threads=kind.threads,
        numerics=kind.numerics,
        kernel=kernel,
        choice=choice,
        ratio=ratio,
        gain=gain,
        seconds=seconds,
        model=file_digest(model),
        version=VERSION,
        generator=generator_version(),
        date=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def remember(found: Iterable[TuningRecord], place: Path | None = None) -> int:
    """Keep records in the user's cache (or the database `place`), all of them or none; answers how many. None where
    `FUSELINE_NO_CACHE` asks for that. Raises E0705 for a database that cannot be written."""
    if place is None and disabled(KIND):
        return 0
    rows = [(*(getattr(one, name) for name in _FIELDS), msgspec.json.encode(one)) for one in found]
    where = place or _made() / FILE

    def write(database: sqlite3.Connection) -> int:
        database.execute("begin immediate")
        database.executemany(f"insert or replace into records values ({', '.join('?' * 7)})", rows)
        database.execute("commit")
        return len(rows)

    return _with_database(where, write)


def _made() -> Path:
    try:
        return private_folder(KIND)
    except OSError as problem:
        raise _unreadable(cache_folder() / KIND, problem.strerror or str(problem)) from problem


def all_records(source: Path | None = None) -> list[TuningRecord]:
    """The records of the user's cache, or those of a file: exported ones or a database. Raises E0705 for one that
    cannot be read."""
    where = source or cache_folder() / KIND / FILE
    if source is None and (disabled(KIND) or not where.exists()):
        return []
    if source is not None and not _is_database(source):
        return _exported(source)
    rows = _with_database(where, lambda database: database.execute("select record from records").fetchall())
    try:
        return [msgspec.json.decode(row[0], type=TuningRecord) for row in rows]
    except msgspec.MsgspecError as problem:
        raise _unreadable(where, f"a record of another form: {problem}") from problem


def export_records(path: Path, source: Path | None = None) -> int:
    """Write the records of the user's cache (or `source`) as one JSON document; answers how many. Raises E0705 and
    E0502."""
    found = sorted(all_records(source), key=lambda one: tuple(getattr(one, name) for name in _FIELDS))
    document = {"version": SCHEMA, "records": found}
    write_bytes(path, msgspec.json.format(msgspec.json.encode(document)) + b"\n")
    return len(found)


def import_records(path: Path, place: Path | None = None) -> int:
    """Keep the records of a file beside those that are there; answers how many. Raises E0705."""
    return remember(all_records(path), place)


# choosing -------------------------------------------------------------------------------------------------------------


def choices_for(kind: CompileKind, source: Path | None = None) -> KernelChoices:
    """What records ask of kernels on this machine: per class the choice that gained most, stale ones as such, and
    the classes that only other machines have records of.

    Raises E0705 for a file `source` that cannot be read; records of the cache that cannot be are no reason for a
    compile to fail, and said in `KernelChoices.unread`.
    """
    try:
        records = all_records(source)
    except FuselineError as problem:
        if source is not None:
            raise
        return KernelChoices(unread=str(problem))
    found, elsewhere = dict[str, TuningRecord](), set[str]()
    for one in records:
        if (one.target, one.threads, one.numerics) != kind:
            continue
        if one.machine != machine_kind():
            elsewhere.add(class_id(one.kernel))
        elif (known := found.get(class_id(one.kernel))) is None or _rank(one) < _rank(known):
            found[class_id(one.kernel)] = one
    asked = [
        (name, Asked(one.choice, _stale(one)))
        for name, one in sorted(found.items())
        if one.choice != DEFAULT and one.gain > 0
    ]
    return KernelChoices(tuple(asked), frozenset(elsewhere.difference(found)))


def _rank(one: TuningRecord) -> tuple[bool, float, str]:
    """Records of this generator first, then what gained most."""
    return bool(_stale(one)), -one.gain, one.model


def _stale(one: TuningRecord) -> str:
    """Why a record no longer says anything of the kernels of this fuseline; empty where it does."""
    if one.generator == generator_version():
        return ""
    return f"it was measured with kernels of fuseline {one.version} ({one.generator}), these are {generator_version()}"


@cache
def generator_version() -> str:
    """Identifies the kernel generator: a digest of its sources. Times of other kernels say nothing of these."""
    root = Path(__file__).parents[1] / "targets" / "cpu"
    digest = hashlib.blake2b(digest_size=4)
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def target_name(target: str) -> str:
    """A target as records call it: `cpu` with the instruction set of this CPU, a description by the digest of its
    content. Raises OSError for a file that cannot be read.

    >>> target_name("cpu:avx2"), target_name("null")
    ('cpu:avx2', 'null')
    """
    family, _, variant = target.partition(":")
    if family != "cpu":
        return target
    if variant.endswith(".toml"):
        return f"cpu:{file_digest(variant)[:16]}"
    from fuseline.targets.cpu.isa.detection import detect

    return f"cpu:{variant or detect().name}"


# files ----------------------------------------------------------------------------------------------------------------


def _with_database(path: Path, work: Callable[[sqlite3.Connection], T]) -> T:
    """What `work` answers of the database at `path`, made where it is missing. Raises E0705."""
    try:
        with closing(sqlite3.connect(path, timeout=WAIT_SECONDS, isolation_level=None)) as database:
            version = database.execute("pragma user_version").fetchone()[0]
            if version not in (0, SCHEMA):
                raise _unreadable(path, f"its form is {version}, this fuseline has {SCHEMA}")
            if version == 0:
                database.execute(_TABLE)
                database.execute(f"pragma user_version = {SCHEMA}")
            return work(database)
    except sqlite3.Error as problem:
        raise _unreadable(path, str(problem)) from problem


def _is_database(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(16) == b"SQLite format 3\0"
    except OSError as problem:
        raise _unreadable(path, problem.strerror or str(problem)) from problem


class _Document(msgspec.Struct):
    version: int
    records: Sequence[TuningRecord]


def _exported(path: Path) -> list[TuningRecord]:
    try:
        document = msgspec.json.decode(path.read_bytes(), type=_Document)
    except msgspec.MsgspecError as problem:
        raise _unreadable(path, str(problem)) from problem
    if document.version != SCHEMA:
        raise _unreadable(path, f"its form is {document.version}, this fuseline has {SCHEMA}")
    return list(document.records)


def _unreadable(path: Path, why: str) -> FuselineError:
    hint = "`fuseline cache export FILE` writes records; those of the cache go with `fuseline cache clear`"
    return FuselineError("E0705", why, node=str(path), hint=hint)
