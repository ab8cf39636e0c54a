"""Rules from outside the tree: a file, an installed package, and everything that can be wrong with them."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from fuseline.errors import FuselineError
from fuseline.passes.fusion import rule as rules
from fuseline.passes.fusion.rule import installed_rules, load_rules

GOOD = """
from fuseline.passes.fusion.decision import WhyNot
from fuseline.passes.fusion.rule import FusionRule

class Never(FusionRule):
    name = "never"

    def matches(self, merge, graph):
        return WhyNot("never", "this rule only says no")

EXPORT = Never
"""


def _file(text: str, tmp_path: Path) -> Path:
    path = tmp_path / "my_rules.py"
    path.write_text(text)
    return path


@pytest.mark.parametrize("text", [GOOD, GOOD + "EXPORT = [Never, Never]\n"])
def test_a_file_gives_its_rules(text: str, tmp_path: Path):
    assert {rule.name for rule in load_rules(_file(text, tmp_path))} == {"never"}


@pytest.mark.parametrize("text", ["", "EXPORT = 3", "EXPORT = [int]", "raise ValueError('no')", "def broken("])
def test_a_file_without_rules_is_refused_by_name(text: str, tmp_path: Path):
    path = _file(text, tmp_path)
    with pytest.raises(FuselineError) as caught:
        load_rules(path)
    assert (caught.value.code, caught.value.node) == ("E0501", str(path))


def test_a_missing_file_is_refused(tmp_path: Path):
    with pytest.raises(FuselineError, match="E0501"):
        load_rules(tmp_path / "nothing.py")


def _install(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setattr(rules, "entry_points", lambda group: [EntryPoint("mine", value, group)])


def test_an_installed_package_gives_its_rules(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    _file(GOOD, tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    _install(monkeypatch, "my_rules")
    assert [rule.name for rule in installed_rules()] == ["never"]


@pytest.mark.parametrize("value", ["fuseline_no_such_package", "json"])
def test_a_package_without_rules_is_refused_by_name(value: str, monkeypatch: pytest.MonkeyPatch):
    _install(monkeypatch, value)
    with pytest.raises(FuselineError) as caught:
        installed_rules()
    assert (caught.value.code, caught.value.node) == ("E0501", value)


def test_without_packages_there_are_none():
    assert installed_rules() == []
