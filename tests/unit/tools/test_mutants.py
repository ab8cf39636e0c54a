"""What the mutation tool draws, puts in place and counts, on a module of its own; `make mutants` runs it over the
compiler."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("mutmut")

from tools.mutants.changes import Mutant, count, mutants
from tools.mutants.drawing import draw, made, named
from tools.mutants.forks import Job, Outcome, outcomes
from tools.mutants.put_in_place import Live
from tools.mutants.reach import Measured, Reach, digest
from tools.mutants.verdicts import (
    EQUIVALENT,
    KILLED,
    SURVIVED,
    UNREACHED,
    Equivalents,
    Summary,
    Verdict,
    as_json,
    table,
    verdict,
)

FILE = "src/fuseline/passes/layout/sample.py"
TEXT = """
from functools import cache

LIMIT = 1 + 2


@cache
def kept(x):
    return twice(x)


def twice(x, by=2):
    if x < 0:
        return 0
    return add(
        x,
        by,
    )


def add(x, y):
    return x * y


class Adder:
    def by(self, x):
        return (lambda y: x + y)(1)
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    path = tmp_path / FILE
    path.parent.mkdir(parents=True)
    path.write_text(TEXT)
    return tmp_path


@pytest.fixture
def every(root: Path) -> list[Mutant]:
    return mutants(root, FILE, range(count(root, FILE)))


@pytest.fixture
def live(root: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("mutants_sample", root / FILE)
    assert spec is not None and spec.loader is not None
    module = sys.modules["mutants_sample"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _of(every: list[Mutant], added: str) -> Mutant:
    (found,) = (mutant for mutant in every if mutant.added == added)
    return found


def test_mutants_are_of_functions_and_methods_and_have_a_place_and_a_diff(every: list[Mutant]):
    assert {mutant.function for mutant in every} == {"twice", "add", "Adder.by"}
    changed = _of(every, "return x / y")
    assert changed.removed == "return x * y"
    assert changed.name == f"fuseline.passes.layout.sample.add:{changed.number}"
    assert changed.diff.splitlines() == [f"{FILE}:22  {changed.name}", "  - return x * y", "  + return x / y"]


def test_a_mutants_lines_are_those_of_its_statement(every: list[Mutant]):
    assert _of(every, "return x / y").lines() == {22}
    assert _of(every, "if x <= 0:").lines() == {13}
    assert _of(every, "return 1").lines() == {14}
    assert _of(every, "def twice(x, by=3):").lines() == {12, 13}  # the head runs on import
    assert all(
        mutant.lines() == {15, 16, 17, 18}
        for mutant in every
        if mutant.added in ("None,", "") and mutant.function == "twice"
    )


@pytest.mark.parametrize(
    ("added", "call", "value"),
    [
        ("return x / y", lambda m: m.kept(6), 3.0),
        ("def twice(x, by=3):", lambda m: m.twice(6), 18),
        ("return (lambda y: x - y)(1)", lambda m: m.Adder().by(6), 5),
        ("return (lambda y: x + y)(2)", lambda m: m.Adder().by(6), 8),
    ],
)
def test_a_mutant_in_place_is_what_everything_calls(
    root: Path, live: ModuleType, every: list[Mutant], added: str, call: object, value: float
):
    assert callable(call)
    live.kept(6), call(live)  # pyright: ignore[reportUnusedExpression] - a cache that is full hides nothing
    assert Live(root).put_in_place(_of(every, added)) == 1
    assert call(live) == value


def test_a_sample_is_of_the_modules_asked_for_and_the_same_again():
    counts = {f"src/fuseline/{part}.py": 20 for part in ("passes/a", "passes/b", "analysis/c")}
    drawn = draw(counts, ["fuseline.passes.*"], 10, 3)
    assert sum(map(len, drawn.values())) == 10 and all("/passes/" in file for file in drawn)
    assert (
        drawn
        == draw(dict(reversed(counts.items())), ["fuseline.passes.*"], 10, 3)
        != draw(counts, ["fuseline.passes.*"], 10, 4)
    )
    assert draw(counts, ["fuseline.analysis.c"], 0, 0) == {"src/fuseline/analysis/c.py": list(range(20))}


def test_mutants_are_made_once(root: Path, every: list[Mutant], monkeypatch: pytest.MonkeyPatch):
    place = root / "made.json"
    assert made(root, {FILE: [1, 4]}, place, 1, lambda _: None) == [every[1], every[4]]
    monkeypatch.setattr(
        "tools.mutants.drawing.outcomes", lambda jobs, workers: [pytest.fail("made again") for _ in jobs]
    )
    assert made(root, {FILE: [4]}, place, 1, lambda _: None) == [every[4]]


def test_mutants_are_found_by_name():
    files = ["src/fuseline/dispatch/arms.py", "src/fuseline/analysis/arms_too.py"]
    assert named(
        ["fuseline.dispatch.arms.A.f:3", "fuseline.analysis.arms_too.g:1", "fuseline.dispatch.arms.g:9"], files
    ) == {
        "src/fuseline/dispatch/arms.py": [3, 9],
        "src/fuseline/analysis/arms_too.py": [1],
    }
    with pytest.raises(KeyError):
        named(["fuseline.analysis.other.f:3"], files)


def _endless() -> None:
    while True:
        pass


def _raises() -> None:
    raise SystemExit(3)


def test_children_answer_or_are_ended():
    jobs = [Job("value", lambda: [1, "a"], 10), Job("time", _endless, 1), Job("raises", _raises, 10)]
    found = {outcome.key: outcome for outcome in outcomes(jobs, 2)}
    assert found["value"] == Outcome("value", [1, "a"])
    assert found["time"].out_of_time and found["time"].value is None
    assert "SystemExit: 3" in found["raises"].value["error"]


@pytest.mark.parametrize("broken", [False, True])
def test_nothing_is_judged_where_a_test_file_does_not_read(tmp_path: Path, broken: bool):
    (tmp_path / "test_right.py").write_text("def test_right(): pass\n")
    (tmp_path / "test_other.py").write_text(f"import {'no_such_module' if broken else 'os'}\n")
    code = (
        "import sys; from pathlib import Path; from tools.mutants.session import start; "
        "sys.exit(start(Path(sys.argv[1]), sys.argv[1:], lambda session: print(*session.items, file=sys.__stdout__)))"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=250, check=False)
    assert (ran.stdout, bool(ran.returncode)) == (("", True) if broken else ("test_right.py::test_right\n", False))
    assert ("1 test files cannot be collected" in ran.stderr) == broken


def test_tests_that_run_the_line_are_met_own_ones_and_quick_ones_first(root: Path):
    masks = {FILE: 1 << 13 | 1 << 22}
    tests = {
        "slow": Measured(2.0, True, masks),
        "quick": Measured(0.5, True, masks),
        "test_sample": Measured(3.0, True, masks),
        "fails": Measured(0.1, False, masks),
    }
    reach = Reach(
        tests | {"elsewhere": Measured(0.1, True, {FILE: 1 << 3}), "gone": Measured(0.1, True, masks)}, {"t.py": "x"}
    )
    known = ["slow", "quick", "test_sample", "fails", "elsewhere"]
    assert reach.tests_of(FILE, {13}, known, exact=True) == ["test_sample", "quick", "slow"]
    assert reach.tests_of(FILE, {13}, known, exact=False) == ["test_sample", "quick", "slow", "elsewhere"]
    assert reach.within(["test_sample", "quick", "slow"], 4.0) == (["test_sample", "quick"], 3.5)
    reach.write(root / "reach.json")
    assert Reach.read(root / "reach.json") == reach and Reach.read(root / "none") == Reach()


def test_new_and_changed_tests_are_measured(root: Path):
    for name in ("a.py", "b.py"):
        (root / name).write_text(name)
    reach = Reach(
        {"a::x": Measured(1.0, True, {}), "b::x": Measured(1.0, True, {})},
        {"a.py": digest(root / "a.py"), "b.py": "before"},
    )
    assert reach.unmeasured(root, [("a::x", "a.py"), ("a::new", "a.py"), ("b::x", "b.py")]) == ["a::new", "b::x"]


def test_unnoticed_and_unreached_mutants_are_left_and_equivalent_ones_count_for_nothing(
    root: Path, every: list[Mutant]
):
    answers = [
        Outcome("", {"tests": 3, "placed": 1, "killer": "t"}),
        Outcome("", {"tests": 3, "placed": 1, "killer": None}),
        Outcome("", {"tests": 0}),
    ]
    verdicts = [verdict(answer) for answer in (*answers, Outcome("", None, 24), Outcome("", {"error": "raised"}))]
    assert [found.kind for found in verdicts] == [KILLED, SURVIVED, UNREACHED, KILLED, KILLED]
    chosen = {mutant.name: mutant for mutant in every[: len(verdicts) + 1]}
    summary = Summary(dict(zip(chosen, [*verdicts, Verdict(EQUIVALENT)], strict=True)), chosen)
    assert summary.share == 40.0
    assert [mutant.name for mutant in summary.left] == sorted(mutant.name for mutant in every[1:3])
    assert as_json(summary, 0, 10.0)["areas"] == {
        "passes/layout": {KILLED: 3, SURVIVED: 1, UNREACHED: 1, EQUIVALENT: 1}
    }
    assert table(summary)[-1] == "2 of 6 mutants left: 40.0 %"


def test_equivalent_mutants_are_known_by_function_and_lines(root: Path, every: list[Mutant]):
    entry = (
        'function = "fuseline.passes.layout.sample.add"\nremoved = "return x * y"\nadded = "return x / y"\nreason '
        '= "y is 1"\n'
    )
    (root / "equivalent.toml").write_text(
        f"[[mutant]]\n{entry}\n[[pattern]]\ntext = '[23]'\nreason = 'any number will do'"
    )
    known = Equivalents.read(root / "equivalent.toml")
    assert [mutant.added for mutant in every if mutant in known] == ["def twice(x, by=3):", "return x / y"]


def test_listed_equivalents_are_of_lines_that_are_there():
    root = Path(__file__).parents[3]
    for function, removed, _ in Equivalents.read(root / "tools/mutants/equivalent.toml").reasons:
        parts = function.split(".")
        file = next(
            path
            for i in range(len(parts), 0, -1)
            if (path := root / "src" / Path(*parts[:i]).with_suffix(".py")).is_file()
        )
        lines = [line.strip() for line in file.read_text(encoding="utf-8").splitlines()]
        assert set(removed.splitlines()) <= set(lines), (
            f"{function}: a mutant of these lines is listed, and the lines have changed"
        )
