"""The fusion rules as text and as a document."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from fuseline.cli.rule_listing import rules_listing_option, show_rules
from fuseline.errors import FuselineError
from fuseline.passes.fusion.user_rules import list_rules

RULE = '''
from fuseline.passes.fusion.decision import WhyNot
from fuseline.passes.fusion.rule import FusionRule

class Apart(FusionRule):
    """Keeps all apart."""

    name = "keep-apart"

    def matches(self, merge, graph):
        return WhyNot("no-rule", "apart")

EXPORT = Apart
'''


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "rule.py").write_text(RULE)
    return tmp_path / "rule.py"


def test_rules_of_files_among_all(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    show_rules([file], "opt", as_json=True)
    document = json.loads(capsys.readouterr().out)
    infos = list_rules([file])
    assert (document["command"], [rule["name"] for rule in document["rules"]]) == ("opt", [info.name for info in infos])
    mine = next(rule for rule in document["rules"] if rule["name"] == "keep-apart")
    assert (mine["summary"], mine["origin"], mine["after"]) == ("Keeps all apart.", str(file), [])


def test_a_table(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    show_rules([file], "opt", as_json=False)
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split() == "rule merges after from what it is about".split()
    infos = {info.name: info for info in list_rules([file])}
    assert [line.split()[0] for line in lines] == list(infos)
    for line in lines:
        info = infos[line.split()[0]]
        assert line.rstrip().endswith(info.summary)
        assert (", ".join(info.after) or "-") in line and info.shape in line and info.origin in line


def test_what_is_wrong_with_a_rule(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("1 / 0")
    with pytest.raises(FuselineError) as caught:
        show_rules([tmp_path / "broken.py"], "opt", as_json=False)
    assert caught.value.code == "E0704"


def test_the_option() -> None:
    @click.command()
    @rules_listing_option
    def command(list_rules: bool) -> None:
        click.echo(str(list_rules))

    assert CliRunner().invoke(command, []).output == "False\n"
    assert CliRunner().invoke(command, ["--list-rules"]).output == "True\n"
