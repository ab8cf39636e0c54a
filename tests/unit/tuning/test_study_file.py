"""The file that studies are in."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import optuna
import pytest

from fuseline.errors import FuselineError
from fuseline.tuning.study_file import default_file, kept, opened


def foreign(path: Path, kind: str) -> None:
    """A file that is no storage, or one of another version."""
    if kind == "text":
        path.write_text("notes about tuning\n" * 100)
    elif kind == "database":
        with closing(sqlite3.connect(path)) as database:
            database.execute("CREATE TABLE studies (name TEXT)")
    else:
        optuna.storages.RDBStorage(f"sqlite:///{path}").engine.dispose()
        with closing(sqlite3.connect(path)) as database:
            database.execute("UPDATE alembic_version SET version_num = 'v99'")
            database.commit()


@pytest.mark.parametrize("kind", ["text", "database", "version"])
def test_another_file_is_refused_and_left_as_it_is(tmp_path: Path, kind: str):
    path = tmp_path / "s.db"
    foreign(path, kind)
    before, others = path.read_bytes(), sorted(tmp_path.iterdir())
    with pytest.raises(FuselineError, match="E1001.*s.db"):
        opened(path)
    assert path.read_bytes() == before and sorted(tmp_path.iterdir()) == others


def test_a_file_is_made_and_opened_again(tmp_path: Path):
    path = tmp_path / "folder" / "s.db"
    optuna.create_study(study_name="a", storage=opened(path))
    assert [study.study_name for study in opened(path).get_all_studies()] == ["a"]


def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FuselineError, match="E0502"):
        opened(tmp_path / "file" / "s.db")


def test_where_nothing_can_be_locked_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(descriptor: int) -> bool:
        raise OSError(37, "no locks available")

    path = tmp_path / "s.db"
    opened(path)
    monkeypatch.setattr("fuseline.tuning.study_file.locks", refuse)
    with pytest.raises(FuselineError, match="E1001.*cannot lock: no locks available"), kept(path):
        pass


def test_one_search_at_a_time(tmp_path: Path):
    path = tmp_path / "s.db"
    opened(path)
    with kept(path), pytest.raises(FuselineError, match="E1001.*another search writes to it"), kept(path):
        pass
    with kept(path):
        pass


def test_graphs_and_machines_have_files_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FUSELINE_CACHE_DIR", str(tmp_path))
    places = {default_file("g", "cpu", "m"), default_file("g", "cpu", "n"), default_file("h", "cpu", "m")}
    assert len(places) == 3 and all(place.is_relative_to(tmp_path) for place in places)
