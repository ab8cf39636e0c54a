"""Tuning records: kept by many processes at once, chosen by machine, generator and ratio, exported, and followed by
compiles."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner

import fuseline
from fuseline.cache.folder import clear, entries, shrink
from fuseline.cli.cache import cache
from fuseline.cli.compile import compile as compile_command
from fuseline.cli.stats import stats
from fuseline.errors import FuselineError
from fuseline.report.explain import explain_model, explain_node
from fuseline.tuning import records
from fuseline.tuning.kernel_knobs import KERNEL, kernel_knobs
from fuseline.tuning.records import (
    TuningRecord,
    all_records,
    choices_for,
    compile_kind,
    export_records,
    found_here,
    import_records,
    remember,
    target_name,
)
from fuseline.tuning.trial import Interval
from tests.draws import RNG

from .layers import save_layers

KIND = compile_kind(threads=1)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUSELINE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("FUSELINE_NO_CACHE", raising=False)


@pytest.fixture(name="model")
def _model(tmp_path: Path) -> Path:
    return save_layers(tmp_path / "layers.onnx")


def _record(
    path: Path, kernel: str = "contraction.0123456789ab", choice: str = "tile=4x16", **changes: Any
) -> TuningRecord:
    changes.setdefault("gain", 0.1)
    found = found_here(kernel, choice, Interval(0.9, 0.89, 0.91), gain=0.0, seconds=0.01, model=path, kind=KIND)
    return msgspec.structs.replace(found, **changes)


def test_what_is_remembered_is_found_again_and_a_later_search_of_the_model_replaces_it(model: Path):
    first = _record(model)
    assert remember([first, _record(model, "convolution.ba9876543210", "winograd=4")]) == 2
    assert first in all_records() and len(all_records()) == 2
    second = _record(model, choice="tile=8x16", gain=0.05)
    assert remember([second]) == 1
    assert sorted(one.choice for one in all_records()) == ["tile=8x16", "winograd=4"]


def test_the_best_choice_of_several_models_is_asked_for(model: Path):
    others = [
        _record(model, choice="tile=4x16", gain=0.05, model="a"),
        _record(model, choice="tile=8x16", gain=0.09, model="b"),
        _record(model, choice="tile=2x16", gain=0.07, model="c"),
    ]
    remember(others)
    assert {name: one.text for name, one in choices_for(KIND).asked} == {"0123456789ab": "tile=8x16"}


@pytest.mark.parametrize("changes", [{"choice": "default"}, {"gain": 0.0}, {"gain": -0.02}])
def test_what_is_no_faster_is_not_asked_for(model: Path, changes: dict[str, Any]):
    remember([_record(model, **changes)])
    assert not choices_for(KIND)


@pytest.mark.parametrize("changes", [{"threads": 2}, {"numerics": "fast"}, {"target": "cpu:baseline"}])
def test_records_of_another_kind_of_compile_are_not_asked_for(model: Path, changes: dict[str, Any]):
    remember([_record(model, **changes)])
    assert not choices_for(KIND)


def test_records_of_other_machines_are_told_apart(model: Path):
    remember([_record(model, machine="another", gain=0.5), _record(model, "pooling.000000000001", machine="another")])
    remember([_record(model, gain=0.1)])
    found = choices_for(KIND)
    assert [name for name, _ in found.asked] == ["0123456789ab"]
    assert found.elsewhere == {"000000000001"}


def test_records_of_other_kernels_are_stale_and_yield_to_newer_ones(model: Path):
    old = _record(model, choice="tile=2x16", gain=0.5, generator="00000000", model="a")
    remember([old])
    ((_, asked),) = choices_for(KIND).asked
    assert asked.text == "tile=2x16" and "00000000" in asked.stale
    remember([_record(model, gain=0.03)])
    ((_, asked),) = choices_for(KIND).asked
    assert (asked.text, asked.stale) == ("tile=4x16", "")


WRITER = """
import sys
from pathlib import Path
from fuseline.tuning.records import compile_kind, found_here, remember
from fuseline.tuning.trial import Interval
number, model = sys.argv[1:]
for i in range(25):
    name = f"contraction.{int(number):04d}{i:08d}"
    ratio, kind = Interval(.9, .8, .95), compile_kind(threads=1)
    remember([found_here(name, "tile=4x16", ratio, gain=.1, seconds=1, model=model, kind=kind)])
"""


def test_processes_that_write_at_once_lose_nothing(model: Path):
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(number), str(model)]) for number in range(3)]
    assert [writer.wait(timeout=300) for writer in writers] == [0, 0, 0]
    assert len({one.kernel for one in all_records()}) == 75


def test_records_travel_as_a_document(model: Path, tmp_path: Path):
    found = [_record(model, f"contraction.{i:012d}", gain=0.2 - i / 100) for i in range(3)]
    remember(found)
    assert export_records(tmp_path / "r.json") == 3
    assert sorted(all_records(tmp_path / "r.json"), key=lambda one: one.kernel) == found
    assert import_records(tmp_path / "r.json", tmp_path / "other.sqlite") == 3
    assert sorted(all_records(tmp_path / "other.sqlite"), key=lambda one: one.kernel) == found
    assert choices_for(KIND, tmp_path / "r.json") == choices_for(KIND)


BROKEN = {
    "no JSON": b"{",
    "another form": b'{"version": 2, "records": []}',
    "no record": b'{"version": 1, "records": [{"machine": "m"}]}',
    "a damaged database": b"SQLite format 3\0" + b"\xff" * 200,
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_file_that_holds_no_records_is_refused(what: str, tmp_path: Path, model: Path):
    path = tmp_path / "records"
    path.write_bytes(BROKEN[what])
    for use in (all_records, import_records, lambda path: fuseline.compile(model, threads=1, tuned=path)):
        with pytest.raises(FuselineError) as caught:
            use(path)  # pyright: ignore[reportArgumentType]
        assert caught.value.code == "E0705" and caught.value.node == str(path)
    assert path.read_bytes() == BROKEN[what]


def test_a_database_of_another_form_is_left_alone(tmp_path: Path, model: Path):
    path = tmp_path / "records.sqlite"
    with sqlite3.connect(path) as database:
        database.execute("pragma user_version = 7")
    with pytest.raises(FuselineError, match="its form is 7"):
        remember([_record(model)], path)


def test_damaged_records_of_the_cache_are_a_warning(model: Path, tmp_path: Path):
    remember([_record(model)])
    (tmp_path / "cache" / records.KIND / records.FILE).write_bytes(b"SQLite format 3\0" + b"\xff" * 200)
    program = fuseline.compile(model, threads=1, tuned=True)
    assert any("no tuning records are used" in line for line in program.record.warnings)


def test_no_cache_means_no_records(model: Path, monkeypatch: pytest.MonkeyPatch):
    remember([_record(model)])
    monkeypatch.setenv("FUSELINE_NO_CACHE", "1")
    assert remember([_record(model)]) == 0 and all_records() == []
    monkeypatch.setenv("FUSELINE_NO_CACHE", "programs")
    assert remember([_record(model)]) == 1 and len(all_records()) == 1


def test_the_cache_counts_records_and_no_limit_drops_them(model: Path):
    remember([_record(model)])
    assert shrink(limit=0) == 0
    assert [entry.path.name for entry in entries() if entry.path.parent.name == records.KIND] == [records.FILE]
    document = msgspec.json.decode(CliRunner().invoke(cache, ["--json"]).output)
    assert document["kinds"]["tuning"]["files"] == 1
    clear()
    assert all_records() == []


def test_descriptions_are_told_apart_by_content(tmp_path: Path):
    path = tmp_path / "here.toml"
    path.write_text('isa = "avx2"\n')
    first = target_name(f"cpu:{path}")
    path.write_text('isa = "avx2"\nl1_bytes = 65536\n')
    assert first != target_name(f"cpu:{path}")
    assert target_name("cpu").startswith("cpu:") and target_name("cpu") != "cpu"


# compiles that use them -----------------------------------------------------------------------------------------------


def _filtered(model: Path) -> tuple[str, str]:
    """The name of a class, and a choice of it."""
    knob = next(k for k in kernel_knobs(model, {"threads": 1}) if any("winograd" in c for c in k.choices))
    return knob.name.removeprefix(KERNEL), knob.choices[1]


def test_a_compile_follows_records_until_the_user_says_otherwise(model: Path):
    name, choice = _filtered(model)
    plain = fuseline.compile(model, threads=1)
    assert not any(dispatch.choices for dispatch in plain.record.dispatches)
    assert fuseline.compile(model, threads=1, tuned=True).from_cache  # there are no records yet
    remember([_record(model, name, choice)])
    tuned = fuseline.compile(model, threads=1, tuned=True)
    assert not tuned.from_cache and {name: choice} in [dispatch.choices for dispatch in tuned.record.dispatches]
    assert fuseline.compile(model, threads=1, tuned=True).from_cache
    assert fuseline.compile(model, threads=1).record.statistics.get("kernel_choices") is None
    other = fuseline.compile(model, threads=1, tuned=True, kernels={name: "direct"})
    assert {name: "direct"} in [dispatch.choices for dispatch in other.record.dispatches]
    x = RNG.standard_normal((1, 5, 31, 31)).astype(np.float32)
    np.testing.assert_allclose(tuned.run({"x": x})["y"], plain.run({"x": x})["y"], rtol=0, atol=0.05)
    followed = next(dispatch for dispatch in tuned.record.dispatches if dispatch.choices)
    assert f"  tuned: {name} has {choice}" in explain_node(tuned.record, followed.name).lines


def test_stale_records_are_a_remark_and_those_of_other_machines_are_counted(model: Path):
    name, choice = _filtered(model)
    remember([_record(model, name, choice, generator="00000000")])
    stale = fuseline.compile(model, threads=1, tuned=True)
    remarks = [remark for remark in stale.record.remarks if remark.rule == "tuned"]
    assert {remark.code for remark in remarks} == {"choice-stale"} and remarks[0].nodes
    assert any("choice-stale" in line and "00000000" in line for line in explain_model(stale.record).lines)
    counts = {"followed": 0, "stale": 1, "refused": 0, "other_machines": 0}
    assert stale.record.statistics["kernel_choices"] == counts
    clear()
    remember([_record(model, name, choice, machine="another")])
    elsewhere = fuseline.compile(model, threads=1, tuned=True)
    assert not elsewhere.record.remarks and not any(dispatch.choices for dispatch in elsewhere.record.dispatches)
    assert elsewhere.record.statistics["kernel_choices"] == {**counts, "stale": 0, "other_machines": 1}


def test_a_record_of_a_choice_that_is_legal_no_more_is_a_remark(model: Path):
    name, _ = _filtered(model)
    remember([_record(model, name, "winograd=8")])
    program = fuseline.compile(model, threads=1, tuned=True)
    assert {remark.code for remark in program.record.remarks} == {"choice-error-bound"}


@pytest.mark.parametrize(
    "order", [["--tuned"], ["--tuned", "--tuned-from"], ["--tuned-from", "--tuned"], ["--tuned-from"]]
)
def test_the_command_line_takes_the_users_records_or_a_file(order: list[str], model: Path, tmp_path: Path):
    name, choice = _filtered(model)
    remember([_record(model, name, choice)])
    export_records(tmp_path / "r.json")
    remember([_record(model, name, "direct", gain=0.5)])
    options = [word for one in order for word in ([one, str(tmp_path / "r.json")] if one == "--tuned-from" else [one])]
    arguments = [str(model), "-o", str(tmp_path / "p.fuse"), "--threads", "1", *options]
    answer = CliRunner().invoke(compile_command, arguments, catch_exceptions=False)
    assert answer.exit_code == 0, answer.output
    found = [dispatch.choices for dispatch in fuseline.load(tmp_path / "p.fuse").record.dispatches if dispatch.choices]
    assert found == [{name: choice if "--tuned-from" in order else "direct"}] * 2
    refused = CliRunner().invoke(stats, [str(tmp_path / "p.fuse"), *options])
    assert isinstance(refused.exception, FuselineError) and "--tuned" in str(refused.exception)
