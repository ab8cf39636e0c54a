"""Each file of the rules has the rule of its name."""

from __future__ import annotations

import pytest

from fuseline.errors import FuselineError
from fuseline.passes.fusion.rule import builtin_rules
from fuseline.passes.fusion.rules import row_chain
from fuseline.passes.fusion.rules.root_chain import RootChain
from fuseline.passes.fusion.rules.row_chain import RowChain


@pytest.mark.parametrize(
    ("export", "words"),
    [
        (None, "rule file row_chain has no EXPORT that is a FusionRule"),
        (RowChain(), "rule file row_chain has no EXPORT that is a FusionRule"),
        (int, "rule file row_chain has no EXPORT that is a FusionRule"),
        (RootChain, "rule root-chain lies in row_chain.py"),
    ],
)
def test_a_file_of_the_tree_has_the_rule_of_its_name(export: object, words: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(row_chain, "EXPORT", export)
    with pytest.raises(FuselineError) as caught:
        builtin_rules()
    assert (caught.value.code, caught.value.message) == ("E0901", words)
