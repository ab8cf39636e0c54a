"""Rules from outside the tree: a file, an installed package, and everything that can be wrong with them."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from fuseline.errors import FuselineError
from fuseline.passes.fusion import user_rules
from fuseline.passes.fusion.decision import Answer, NotApplicable
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.rule import RESERVED_NAMES, FusionRule, Merge, builtin_rules, order_rules
from fuseline.passes.fusion.user_rules import BUILT_IN, installed_rules, list_rules, load_rules

HEAD = """
from fuseline.passes.fusion.decision import Legal, WhyNot
from fuseline.passes.fusion.rule import FusionRule, Shape
"""

GOOD = (
    HEAD
    + '''
class Never(FusionRule):
    """Only says no.

    More words.
    """

    name = "never"
    after = ("row-chain",)
    shape = Shape.INLINE_PRODUCER

    def matches(self, merge, graph):
        return WhyNot("no-rule", "this rule only says no")

EXPORT = Never
'''
)

NO_EXPORT = "it has no EXPORT that is a FusionRule class, or a list of them"
MADE = (
    HEAD + "class Rule(FusionRule):\n    name = {name}\n    after = {after}\n    shape = {shape}\n    {body}\nEXPORT = "
    "Rule\n"
)


def _rule(
    name: str = "'mine'",
    after: str = "()",
    shape: str = "Shape.SHARED",
    body: str = "def matches(self, merge, graph): return Legal()",
) -> str:
    return MADE.format(name=name, after=after, shape=shape, body=body)


def _file(text: str, tmp_path: Path) -> Path:
    path = tmp_path / "my_rules.py"
    path.write_text(text)
    return path


@pytest.mark.parametrize("text", [GOOD, GOOD + "EXPORT = [Never]\n"])
def test_a_file_gives_its_rules(text: str, tmp_path: Path):
    rule = load_rules(_file(text, tmp_path))[0]
    assert (rule.name, rule.after, rule.shape.value) == ("never", ("row-chain",), "inline-producer")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", NO_EXPORT),
        ("EXPORT = 3", NO_EXPORT),
        ("EXPORT = []", NO_EXPORT),
        ("EXPORT = [int]", NO_EXPORT),
        ("raise ValueError('no')", "the rule file does not load: ValueError('no')"),
        ("raise SystemExit(3)", "the rule file does not load: SystemExit(3)"),
        ("def broken(", "the rule file does not load: SyntaxError("),
        (_rule(name="'Two Words'"), "class Rule has the name 'Two Words'; write it in kebab-case"),
        (_rule(name="3"), "class Rule has the name 3; write it in kebab-case"),
        (_rule(after="'row-chain'"), "rule mine has after = 'row-chain', which is no tuple of names"),
        (_rule(after="(3,)"), "rule mine has after = (3,), which is no tuple of names"),
        (_rule(shape="'shared'"), "rule mine has shape = 'shared'; use Shape.SHARED or Shape.INLINE_PRODUCER"),
        (_rule(body="pass"), "rule mine cannot be made: Can't instantiate abstract class Rule"),
        (
            _rule(body="def __init__(self): exit(2)\n    def matches(self, merge, graph): return Legal()"),
            "rule mine cannot be made: 2",
        ),
    ],
)
def test_a_file_without_rules_is_refused_by_name(text: str, words: str, tmp_path: Path):
    path = _file(text, tmp_path)
    with pytest.raises(FuselineError) as caught:
        load_rules(path)
    place = f"{path}:1" if "does not load" in words else str(path)
    assert (caught.value.code, caught.value.node) == ("E0704", place)
    assert caught.value.message.startswith(words) and (
        caught.value.message == words or words.endswith(("SyntaxError(", "class Rule"))
    )


@pytest.mark.parametrize(
    ("text", "line"),
    [("x = 1\n\nraise KeyError('x')", 3), ("x = 1\ny = (\n", 2), ("def f():\n    1 / 0\n\nf()", 2)],
)
def test_a_file_that_does_not_load_says_which_line(text: str, line: int, tmp_path: Path):
    path = _file(text, tmp_path)
    with pytest.raises(FuselineError) as caught:
        load_rules(path)
    assert caught.value.node == f"{path}:{line}"


def test_a_missing_file_is_refused(tmp_path: Path):
    path = tmp_path / "nothing.py"
    with pytest.raises(FuselineError) as caught:
        load_rules(path)
    error = caught.value
    assert (error.code, error.node, error.message) == ("E0704", str(path), f"no rule file at {path}")
    assert error.hint == "pass a Python file that has an EXPORT"


def _install(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setattr(user_rules, "entry_points", lambda group: [EntryPoint("mine", value, group)])


def test_an_installed_package_gives_its_rules(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    _file(GOOD, tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    _install(monkeypatch, "my_rules")
    assert [rule.name for rule in installed_rules()] == ["never"]
    assert [info.origin for info in list_rules() if info.name == "never"] == ["my_rules"]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (
            "no_such_package",
            "the rules of an installed package do not load: ModuleNotFoundError(\"No module named 'no_such_package'\")",
        ),
        ("json", NO_EXPORT),
    ],
)
def test_a_package_without_rules_is_refused_by_name(value: str, words: str, monkeypatch: pytest.MonkeyPatch):
    _install(monkeypatch, value)
    with pytest.raises(FuselineError) as caught:
        installed_rules()
    assert (caught.value.code, caught.value.node, caught.value.message) == ("E0704", value, words)


def test_packages_give_their_rules_one_after_the_other(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    for module, rule in (("first_rules", "first"), ("other_rules", "other")):
        (tmp_path / f"{module}.py").write_text(GOOD.replace('"never"', f'"{rule}"'))
    monkeypatch.syspath_prepend(tmp_path)
    entries = [EntryPoint(name, name, "fuseline.rules") for name in ("first_rules", "other_rules")]
    monkeypatch.setattr(user_rules, "entry_points", lambda group: [entry for entry in entries if entry.group == group])
    assert [rule.name for rule in installed_rules()] == ["first", "other"]


def test_a_rule_without_documentation_has_no_summary(tmp_path: Path):
    path = _file(HEAD + "\nfrom fuseline.passes.fusion.decision import Legal\n" + _rule(), tmp_path)
    (info,) = [info for info in list_rules([path]) if info.name == "mine"]
    assert (info.summary, info.shape, info.origin) == ("", "shared", str(path))


def test_without_packages_there_are_none():
    assert installed_rules() == []


def test_all_rules_are_listed_in_the_order_in_which_they_are_asked(tmp_path: Path):
    path = _file(GOOD, tmp_path)
    infos = list_rules([path])
    names = [info.name for info in infos]
    mine = infos[names.index("never")]
    assert (mine.summary, mine.origin, mine.after, mine.shape) == (
        "Only says no.",
        str(path),
        ("row-chain",),
        "inline-producer",
    )
    assert names.index("never") > names.index("row-chain")
    assert {info.origin for info in infos if info.name != "never"} == {BUILT_IN}
    assert all(info.summary.endswith(".") for info in infos)


TAKEN = "has a name that decisions give to something else"


def _named(rule_name: str, *names: str) -> FusionRule:
    class Named(FusionRule):
        name = rule_name
        after = names

        def matches(self, merge: Merge, graph: FusionGraph) -> Answer:
            return NotApplicable()

    return Named()


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ([_named("a"), _named("a")], f"two rules are called a: in {__name__} and in {__name__}"),
        ([_named("row-chain")], f"two rules are called row-chain: in the tree and in {__name__}"),
        ([_named("a", "b"), _named("b", "a")], "rules wait for each other: a after b, b after a"),
        ([_named("b", "a"), _named("a", "b", "row-chain")], "rules wait for each other: a after b, b after a"),
        ([_named("a", "a")], "rules wait for each other: a after a"),
        ([_named("a", "nobody")], "rule a comes after nobody, which is no rule"),
        *(([_named(name)], f"{name}, in {__name__}, {TAKEN}") for name in sorted(RESERVED_NAMES)),
    ],
)
def test_names_and_order_are_checked(rules: list[FusionRule], words: str):
    with pytest.raises(FuselineError) as caught:
        order_rules([*builtin_rules(), *rules])
    error = caught.value
    assert (error.code, error.message, error.node) == ("E0704", words, min(rule.name for rule in rules))
    listed = words.startswith("two rules") or words.endswith(TAKEN)
    assert (error.hint == "`fuseline compile --list-rules` lists the names") == listed


def test_the_example_of_the_docs_is_a_rule(tmp_path: Path):
    page = (Path(__file__).parents[4] / "docs" / "fusion.md").read_text()
    example = page.partition("```python\n")[2].partition("```")[0]
    assert [rule.name for rule in load_rules(_file(example, tmp_path))] == ["transposed-epilogue"]
