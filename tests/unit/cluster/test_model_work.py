"""Work on many models: answers in their order, errors in place of those that fail."""

from __future__ import annotations

import uuid
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fuseline.cluster import cores, model_work
from fuseline.cluster.model_work import Answer, on_workers
from fuseline.cluster.worker_facts import worker_facts
from fuseline.errors import FuselineError
from fuseline.runtime.processors import allowed_processors
from tests.unit.cluster.fake_client import FakeClient


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> FakeClient:
    """Two workers that do what they are given at once."""
    client = FakeClient("a", "b", at_once=True)

    @contextmanager
    def connected(scheduler: str, *, cores: int) -> Generator[FakeClient]:
        assert scheduler == "local" and cores >= 1
        yield client

    monkeypatch.setattr(model_work, "connected", connected)
    monkeypatch.setattr(cores, "_NAME", f"\0fuseline-test-{uuid.uuid4().hex}-{{}}")
    return client


def _files(folder: Path, *names: str) -> dict[str, Path]:
    for name in names:
        (folder / name).write_text(name)
    return {name: folder / name for name in names}


def _read(path: Path, options: Mapping[str, Any], ending: str) -> str:
    text = path.read_text()
    if text == "bad.onnx":
        raise FuselineError("E0105", "malformed", node=str(path))
    return f"{text}{ending}{options['dedup']}{len(allowed_processors()) if options.get('threads') else ''}"


def test_answers_in_order(client: FakeClient, tmp_path: Path):
    files = _files(tmp_path, "c.onnx", "bad.onnx", "a.onnx") | {"none": tmp_path / "none.onnx"}
    told: list[tuple[int, int, str]] = []

    def finished(count: int, total: int, answer: Answer[Any]) -> None:
        told.append((count, total, answer.name))

    answers = list(on_workers("local", files, {"dedup": "!"}, _read, ("?",), finished=finished))
    assert [answer.name for answer in answers] == list(files)
    assert [answer.result for answer in answers] == ["c.onnx?!", None, "a.onnx?!", None]
    errors = [answer.error for answer in answers]
    assert [error and (error.code, error.node) for error in errors] == [
        None,
        ("E0105", str(tmp_path / "bad.onnx")),
        None,
        ("E0101", str(tmp_path / "none.onnx")),
    ]
    assert [count for count, _, _ in told] == [1, 2, 3, 4] and {total for _, total, _ in told} == {4}
    assert sorted(name for _, _, name in told) == sorted(files)
    assert answers[0].host == worker_facts()["host"] and answers[3].host == ""


@pytest.mark.usefixtures("client")
def test_timed_work_holds_cores(tmp_path: Path):
    options = {"dedup": "", "threads": 1}
    (answer,) = on_workers("local", _files(tmp_path, "m.onnx"), options, _read, (" ",), hold=1)
    assert answer.result == "m.onnx 1"


def test_a_cluster_that_goes_away_is_the_answer_of_what_it_leaves(client: FakeClient, tmp_path: Path):
    files = _files(tmp_path, "a.onnx", "b.onnx", "c.onnx")
    client.at_once = False

    def lose(count: int, total: int, answer: Answer[Any]) -> None:
        client.status = "closed"

    original = client.submit

    def submit(*arguments: Any, **options: Any) -> Any:
        future = original(*arguments, **options)
        future.finish() if len(client.futures) == 1 else None
        return future

    client.submit = submit  # type: ignore[method-assign]
    found = list(on_workers("local", files, {"dedup": ""}, _read, ("",), finished=lose))
    assert found[0].result == "a.onnx" and [answer.error and answer.error.code for answer in found[1:]] == ["E1101"] * 2
    assert all(future.was_cancelled for future in client.futures)


def test_nobody_fits(client: FakeClient, tmp_path: Path):
    client.answers = {"a": {**worker_facts(), "version": "9"}}
    client.status = "closed"
    with pytest.raises(FuselineError) as raised:
        list(on_workers("local", _files(tmp_path, "m.onnx"), {}, _read, ("",)))
    assert raised.value.code == "E1101"
