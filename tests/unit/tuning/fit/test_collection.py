"""Models are measured dispatch by dispatch, each record kept as it comes, and only what is missing measured again."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

import fuseline
from fuseline.errors import FuselineError
from fuseline.tuning.fit import collection
from fuseline.tuning.fit.collection import Collection
from fuseline.tuning.fit.records import ProgramKey, ProgramSamples, read_records
from tests.small_models import attention, mlp


@pytest.fixture
def models(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / "mlp.onnx", tmp_path / "attention.onnx"]
    onnx.save(mlp(), paths[0])
    onnx.save(attention("batch", "length"), paths[1])
    return paths


def _quick(rounds: int = 1, target: str = "cpu") -> Collection:
    return Collection(fuseline.compile, target, rounds=rounds, seconds_each=0.0)


def test_dispatches_are_measured_and_nothing_twice(tmp_path: Path, models: list[Path], monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "r.jsonl"
    found = _quick().collect(models, path)
    assert [record.model for record in found] == ["mlp.onnx", "attention.onnx"] and read_records(path) == found
    for record in found:
        assert record.dispatches and all(one.seconds > 0 and one.work for one in record.dispatches)
    measured: list[tuple[str, int]] = []

    def counted(self: Collection, model: Path, key: ProgramKey, number: int) -> ProgramSamples:
        measured.append((model.name, number))
        raise KeyboardInterrupt

    monkeypatch.setattr(Collection, "measured", counted)
    assert _quick().collect(models, path) == found and not measured
    with pytest.raises(KeyboardInterrupt):
        _quick(rounds=2).collect(models, path)
    assert measured == [("mlp.onnx", 1)] and read_records(path) == found


def test_sizes_are_those_that_it_is_measured_with(tmp_path: Path, models: list[Path]):
    (record,) = _quick().collect(models[1:], tmp_path / "r.jsonl")
    sizes = {"batch": 1, "length": 16}
    known = fuseline.compile(models[1], target="cpu", threads=1, shapes=sizes).record.dispatches
    assert [one.work for one in record.dispatches] == [one.work for one in known]


def test_a_target_without_code_and_a_missing_model_are_refused(tmp_path: Path, models: list[Path]):
    with pytest.raises(FuselineError, match="no code") as caught:
        _quick(target="null").collect(models[:1], tmp_path / "r.jsonl")
    assert caught.value.code == "E0501" and not (tmp_path / "r.jsonl").exists()
    with pytest.raises(FuselineError) as caught:
        _quick().collect([tmp_path / "none.onnx"], tmp_path / "r.jsonl")
    assert caught.value.code == "E0101"


def test_other_kinds_of_machines_do_not_count_as_measured(
    tmp_path: Path, models: list[Path], monkeypatch: pytest.MonkeyPatch
):
    path = tmp_path / "r.jsonl"
    _quick().collect(models[:1], path)
    monkeypatch.setattr(collection, "machine_kind", lambda: "another")
    assert [record.machine for record in _quick().collect(models[:1], path)][1:] == ["another"]
