"""Rules and joins by name: all, some, or all but some; a name that none has is refused with the nearest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fuseline
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.cli.run_passes import run_passes
from fuseline.errors import FuselineError
from fuseline.ir.target_description import TargetRules
from fuseline.passes.fusion.driver import Partition, partition
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.rule import builtin_rules
from fuseline.passes.fusion.rule_choice import JOINS, chosen_rules, known_names
from fuseline.passes.fusion.user_rules import rules_asked
from tests.small_models import SMALL_MODELS

from .programs import TARGET, Program

TEXT = """
func.func @main(%x: tensor<9x7xf32>) -> tensor<9x7xf32> {
  %e = tensor.empty() : tensor<9x7xf32>
  %a = linalg.exp ins(%x : tensor<9x7xf32>) outs(%e : tensor<9x7xf32>) -> tensor<9x7xf32>
  %b = linalg.exp ins(%a : tensor<9x7xf32>) outs(%e : tensor<9x7xf32>) -> tensor<9x7xf32>
  return %b : tensor<9x7xf32>
}
"""


def _projections() -> Program:
    p = Program((512, 64), *[(64, 32 + 16 * i) for i in range(3)])
    return p.done(*[p.matmul(p.x[0], w) for w in p.x[1:]])


def _concat() -> Program:
    p = Program((64, 64), (64, 32), (64, 48))
    return p.done(p.concat(p.matmul(p.x[0], p.x[1]), p.matmul(p.x[0], p.x[2])))


def _spaces() -> Program:
    p = Program((300, 500), (300, 500))
    return p.done(p.unary(p.x[0]), p.unary(p.x[1]))


def _small() -> Program:
    p = Program((3, 5), (7, 2))
    return p.done(p.unary(p.x[0]), p.unary(p.x[1]))


def _partition(p: Program, **options: Any) -> Partition:
    chosen = chosen_rules((), **options)
    graph = FusionGraph(p.function.body.block, ShapeAnalysis())
    return partition(graph, chosen.rules, TARGET, joins=chosen.joins)


@pytest.mark.parametrize(
    ("program", "join", "apart"),
    [
        (_projections, "shared-operand", 3),
        (_concat, "concat-slices", 2),
        (_spaces, "same-space", 2),
        (_small, "small-ops", 2),
    ],
)
def test_a_join_can_be_left_out(program: Callable[[], Program], join: str, apart: int):
    assert len(_partition(program()).groups) == 1
    assert len(_partition(program(), only=[join]).groups) == 1
    assert len(_partition(program(), without=[join, *_later(join)]).groups) == apart
    assert len(_partition(program(), only=["row-chain"]).groups) == (3 if apart == 3 or program is _concat else 2)


def _later(join: str) -> tuple[str, ...]:
    """The joins that take what `join` leaves."""
    return JOINS[JOINS.index(join) + 1 :] if join != "concat-slices" else ()


def test_every_rule_has_a_name_to_choose_it_by():
    assert known_names(()) == [*(rule.name for rule in builtin_rules()), *JOINS]
    assert chosen_rules(()).joins == frozenset(JOINS)
    for name in known_names(()):
        only, rest = chosen_rules((), [name]), chosen_rules((), (), [name])
        assert [rule.name for rule in only.rules] + sorted(only.joins) == [name]
        assert len(rest.rules) + len(rest.joins) == len(known_names(())) - 1
        assert chosen_rules((), [name], [name]) == chosen_rules((), (), known_names(()))


@pytest.mark.parametrize(
    ("options", "regions"),
    [
        ("", 1),
        ("{rules=elementwise-cluster}", 1),
        ("{rules=row-chain,elementwise-cluster}", 1),
        ("{rules=slice-epilogue}", 2),
        ("{rules=row-chain,elementwise-cluster without=root-chain}", 1),
        ("{level=none}", 2),
        ("{fusion=none}", 2),
        ("{fusion=none level=none}", 2),
        ("{level=aggressive}", 1),
    ],
)
def test_options_of_the_pass(options: str, regions: int):
    text = run_passes(TEXT, f"cleanup,form-dispatch-regions{options}")
    assert text.count("= flow.dispatch.region") == regions


def test_rules_left_out_of_opt():
    rules = [rule.name for rule in builtin_rules()]
    assert run_passes(TEXT, "cleanup,form-dispatch-regions", without_rules=rules).count("= flow.dispatch.region") == 2
    with pytest.raises(FuselineError, match=r"E0501.*'rowchain'"):
        run_passes(TEXT, "cleanup", without_rules=["rowchain"])


@pytest.mark.parametrize(
    ("options", "message", "hint"),
    [
        ("rules=rowchain", "rules: no fusion rule is called 'rowchain'", "row-chain"),
        ("without=slice-epilog", "without: no fusion rule is called 'slice-epilog'", "slice-epilogue"),
        ("without=7", "(7,)", "its options are"),
        ("level=most", "level is 'most'", "aggressive"),
        ("fusion=most", "fusion is 'most'", "aggressive"),
        ("level=none fusion=aggressive", "level is 'none' and fusion", "one of the two"),
        ("level=none fusion=default", "level is 'none' and fusion, which is the same, 'default'", "one of the two"),
        ("fusion=default level=aggressive", "level is 'aggressive' and fusion, which is the same, 'default'", "one"),
        ("fusion=aggressive level=default", "level is 'default' and fusion, which is the same, 'aggressive'", "one"),
        ("ruls=row-chain", "ruls", "its options are"),
    ],
)
@pytest.mark.parametrize("text", [TEXT])
def test_wrong_options_of_the_pass(text: str, options: str, message: str, hint: str):
    with pytest.raises(FuselineError, match="E0304") as caught:
        run_passes(text, f"cleanup,form-dispatch-regions{{{options}}}")
    assert caught.value.node == "form-dispatch-regions"
    assert message in str(caught.value) and hint in (caught.value.hint or "")


RULE = """
from fuseline.passes.fusion.decision import Forbid
from fuseline.passes.fusion.rule import FusionRule

class Mine(FusionRule):
    name = "mine-alone"

    def matches(self, merge, graph):
        return Forbid("mine", "all of it")

EXPORT = Mine
"""


def test_a_compile_leaves_rules_out(tmp_path: Path):
    (tmp_path / "mine.py").write_text(RULE)
    model, files = SMALL_MODELS["mlp"](), [tmp_path / "mine.py"]

    def dispatches(**options: Any) -> int:
        return len(fuseline.compile(model, target="null", **options).record.dispatches)

    assert dispatches() < dispatches(without_rules=known_names(())) == dispatches(fusion="none")
    assert dispatches(rules=files) == dispatches(fusion="none")
    assert dispatches(rules=files, without_rules=["mine-alone"]) == dispatches()
    for names, rules in ((["elementwise-epilog"], []), (["mine-alone"], []), (["mine"], files)):
        with pytest.raises(FuselineError, match=f"E0501.*no fusion rule is called '{names[0]}'") as caught:
            dispatches(without_rules=names, rules=rules)
        assert caught.value.hint
    for wrong in ("row-chain", [7], None):
        with pytest.raises(FuselineError, match=r"E0501.*without_rules"):
            dispatches(without_rules=wrong)


def test_a_name_of_a_target_is_refused_where_it_stands():
    target = TargetRules(only=("row-chain",), without=("rowchain",), locations={"rowchain": "toy.toml:7"})
    with pytest.raises(FuselineError, match="the target's rules: no fusion rule is called 'rowchain'") as caught:
        rules_asked(target, (), (), (), "form-dispatch-regions")
    assert (caught.value.code, caught.value.node) == ("E0501", "toy.toml:7")
