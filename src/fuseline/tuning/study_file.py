"""The SQLite file that studies are in: found to be one before it is opened, and kept for one search at a time.

Opening a file through Optuna creates its tables; so whether it has them, in the form that this Optuna reads, is asked
of a copy.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import optuna

from fuseline.cache.file_lock import locks
from fuseline.cache.folder import LASTING, private_folder
from fuseline.errors import FuselineError
from fuseline.tuning.extra import quiet

LOCKED_HINT = "wait for it, or give another file: --storage FILE"
_HINT = "give a file that `fuseline tune` wrote, or one that is not there yet: --storage FILE"
_WAIT_SECONDS = 60


def default_file(*about: str) -> Path:
    """The file of the studies about one graph, target and kind of machine, in the cache."""
    return private_folder(LASTING) / f"study-{hashlib.sha256(repr(about).encode()).hexdigest()[:16]}.db"


def opened(path: Path) -> optuna.storages.RDBStorage:
    """The storage in the file at `path`, which is made where it is missing. Raises E1001 for a file that is no storage
    of Optuna, or one of another version, and leaves it as it is; E0502 for a place that cannot be written."""
    if path.exists() and path.stat().st_size:
        _require_storage(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "ab"):
            pass
    except OSError as problem:
        raise FuselineError("E0502", f"cannot write: {problem.strerror}", node=str(path)) from problem
    return _storage(path)


def _storage(path: Path) -> optuna.storages.RDBStorage:
    quiet()
    waiting = {"connect_args": {"timeout": _WAIT_SECONDS}}
    return optuna.storages.RDBStorage(f"sqlite:///{path.absolute()}", engine_kwargs=waiting)


def _require_storage(path: Path) -> None:
    try:
        with TemporaryDirectory() as folder:
            copy = Path(folder) / "copy.db"
            _copy(path, copy)
            storage = _storage(copy)
            storage.get_all_studies()
            storage.remove_session()
            storage.engine.dispose()
    except FuselineError:
        raise
    except OSError as problem:
        raise FuselineError("E1001", f"cannot read: {problem.strerror}", node=str(path), hint=_HINT) from problem
    except Exception as problem:
        reason = str(problem).strip().partition("\n")[0]
        raise FuselineError("E1001", reason or type(problem).__name__, node=str(path), hint=_HINT) from problem


def _copy(path: Path, copy: Path) -> None:
    """A copy of a database with the tables of a study; raises E1001 for any other file."""
    source = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=_WAIT_SECONDS)
    with closing(source), closing(sqlite3.connect(copy)) as target:
        tables = {name for (name,) in source.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        missing = {"studies", "trials", "version_info", "alembic_version"} - tables
        if missing:
            message = f"no study: there is no table {', '.join(sorted(missing))}"
            raise FuselineError("E1001", message, node=str(path), hint=_HINT)
        source.backup(target)


@contextmanager
def kept(path: Path) -> Generator[None]:
    """Keep the file for this search while the context lasts. Raises E1001 where another search has it, or nothing can
    be locked."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        if not _locks(descriptor, path):
            raise FuselineError("E1001", "another search writes to it", node=str(path), hint=LOCKED_HINT)
        yield
    finally:
        os.close(descriptor)


def _locks(descriptor: int, path: Path) -> bool:
    try:
        return locks(descriptor)
    except OSError as problem:
        raise FuselineError("E1001", f"cannot lock: {problem.strerror}", node=str(path), hint=LOCKED_HINT) from problem
