"""The random numbers of tests: a test's own, fresh in every session, the same again with the session's seed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import draws
from tests.draws import RNG

ROOT = Path(__file__).parents[2]
FAILING = "from tests.draws import RNG\n\ndef test_it():\n    assert RNG.integers(2**62) < 0\n"


def drawn() -> list[int]:
    return RNG.integers(2**62, size=4).tolist()


def test_a_test_starts_where_its_name_says(request: pytest.FixtureRequest):
    assert drawn() == draws.generator(request.node.nodeid).integers(2**62, size=4).tolist()


def test_what_a_test_draws_depends_on_nothing_that_ran_before():
    found: list[list[int]] = []
    for name in ("one", "other", "one"):
        draws.start(name)
        found.append(drawn())
    assert found[0] == found[2] != found[1]


def failure(folder: Path, **environment: str) -> str:
    """What pytest prints, with `-q`, of a test that fails and shows its number."""
    (folder / "test_it.py").write_text(FAILING)
    (folder / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text(encoding="utf-8"))
    kept = {name: value for name, value in os.environ.items() if name != draws.VARIABLE}
    found = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", folder, folder / "test_it.py"],
        cwd=folder,
        env=kept | {"PYTHONPATH": f"{ROOT}:{kept.get('PYTHONPATH', '')}"} | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 1, found.stdout + found.stderr
    return found.stdout


def number(output: str) -> str:
    return next(line for line in output.splitlines() if line.startswith("E ") and " < 0" in line)


def test_a_failure_tells_the_seed_that_repeats_it(tmp_path: Path):
    first, second = failure(tmp_path), failure(tmp_path)
    assert number(first) != number(second)
    seed = first.rpartition(f"{draws.VARIABLE}=")[2].split()[0]
    assert number(failure(tmp_path, **{draws.VARIABLE: seed})) == number(first)
