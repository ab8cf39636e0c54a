"""What a plan says beside groups: read, written, and weighed against what the user says."""

from __future__ import annotations

from pathlib import Path

import pytest

import fuseline
from fuseline.errors import FuselineError
from fuseline.passes.fusion.plan import parse_plan
from fuseline.passes.fusion.tuned_choices import TunedChoices, tuned_text, with_choices
from fuseline.report.records import TunedChange
from tests.small_models import mlp

TUNED = TunedChoices(
    dedup="none",
    threads=1,
    fusion="aggressive",
    without_rules=("row-chain",),
    kernels={"contraction.8f37": "tile=9x48"},
    change=(
        TunedChange(knob="dedup", choice="none", detail='a "word"\n', gain=0.25),
        TunedChange(knob="plan/apart/a+b", choice="apart", nodes=("Conv_1", "Relu\\2")),
    ),
    measured={"seconds": 0.5, "confirmed": True, "ratio": [0.9, 0.8, 0.95]},
)


def plan(tuned: TunedChoices) -> str:
    return "version = 1\n" + tuned_text(tuned)


def test_what_is_written_is_read():
    read = parse_plan(plan(TUNED)).tuned
    assert read is not None
    assert read.options == TUNED.options and read.measured == TUNED.measured
    assert [change.nodes for change in read.change] == [(), ("Conv_1", "Relu\\2")]
    assert read.change[0].detail == 'a "word"?'


def test_a_plan_without_the_table_has_none():
    assert parse_plan("version = 1\n").tuned is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[tuned]\nthreads = 0", "at least 1"),
        ('[tuned]\nthreads = "two"', "Expected `int"),
        ("[tuned]\nspeed = 1", "unknown field `speed`"),
        ("tuned = 3", "Expected `object`"),
        ("[[tuned.change]]\nknob = 'x'", "missing required field `choice`"),
    ],
)
def test_another_table_is_refused(text: str, said: str):
    with pytest.raises(FuselineError, match=f"E0701.*tuned: .*{said}"):
        parse_plan(f"version = 1\n{text}\n", "p.toml")


def test_the_user_wins_and_is_told():
    merged, told = with_choices({"dedup": "exact", "numerics": "fast", "threads": None}, TUNED)
    assert merged["dedup"] == "exact" and merged["threads"] == 1 and merged["numerics"] == "fast"
    assert told == ["plan: dedup none of the plan gives way to exact"]


def test_the_same_is_nothing_to_tell():
    assert with_choices({"dedup": "none"}, TUNED)[1] == []


def test_rules_and_kernels_of_both_hold():
    given = {"without_rules": ["small-ops"], "kernels": {"contraction.8f37": "direct", "x.1": "direct"}}
    merged, told = with_choices(given, TUNED)
    assert merged["without_rules"] == ["row-chain", "small-ops"] and told == []
    assert merged["kernels"] == {"contraction.8f37": "direct", "x.1": "direct"}


def test_a_compile_follows_the_table(tmp_path: Path):
    path = tmp_path / "tuned.plan"
    default = fuseline.compile(mlp(), target="null")
    path.write_text(default.plan + tuned_text(TunedChoices(dedup="none", fusion="aggressive", change=TUNED.change)))
    record = fuseline.compile(mlp(), target="null", plan=path).record
    assert (record.dedup, record.fusion) == ("none", "aggressive")
    assert [change.knob for change in record.tuned] == ["dedup", "plan/apart/a+b"]
    assert not [line for line in record.warnings if line.startswith("plan:")]


def test_a_compile_says_what_gave_way(tmp_path: Path):
    path = tmp_path / "tuned.plan"
    path.write_text(fuseline.compile(mlp(), target="null").plan + tuned_text(TunedChoices(dedup="none")))
    record = fuseline.compile(mlp(), target="null", plan=path, dedup="exact").record
    assert record.dedup == "exact" and any("gives way to exact" in line for line in record.warnings)


def test_programs_of_different_tables_are_kept_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FUSELINE_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "tuned.plan"
    plan = fuseline.compile(mlp(), cache=False).plan
    found: list[tuple[str, bool]] = []
    for dedup in ("none", "exact", "none"):
        path.write_text(plan + tuned_text(TunedChoices(dedup=dedup)))
        program = fuseline.compile(mlp(), plan=path)
        found.append((program.record.dedup, program.from_cache))
    assert [dedup for dedup, _ in found] == ["none", "exact", "none"]
    assert not found[0][1] and not found[1][1]
