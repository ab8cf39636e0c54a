"""The effect of a change, and plans that change nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from fuseline.errors import FuselineError
from fuseline.passes.fusion.plan import read_plan
from fuseline.report.records import CompileRecord, HostOpRecord
from fuseline.targets import create_target
from fuseline.tuning.what_if import effect_of, ids_between, plan_with, scratch_description
from tests.unit.report.records import RECORD


class _Program:
    def __init__(self, record: CompileRecord) -> None:
        self.record, self.runs = record, 0

    def bind(self, feeds: Mapping[str, Any]) -> Callable[[], object]:
        def run() -> None:
            self.runs += 1

        return run


def test_both_are_timed_only_where_feeds_are_given() -> None:
    first, second = _Program(RECORD), _Program(RECORD)
    assert effect_of("x", first, lambda: second, None).ratio is None and first.runs == second.runs == 0
    assert effect_of("x", first, lambda: second, {}, rounds=3).ratio is not None and first.runs > 3 < second.runs


def test_a_refused_compile_is_an_effect() -> None:
    def refuse() -> _Program:
        raise FuselineError("E0703", "group 1 cannot be one dispatch")

    found = effect_of("force a b", _Program(RECORD), refuse, None)
    assert found.error is not None and found.error["code"] == "E0703"


def test_ids_are_the_ends_of_edges_between_two_names() -> None:
    assert ids_between(RECORD, "Conv_0", "Relu_1") == ids_between(RECORD, "Relu_1", "Conv_0") == ["%Conv_0", "%Relu_1"]
    assert ids_between(RECORD, "Conv_0", "MatMul_2") == ["%Conv_0", "%MatMul_2"]


def test_names_that_are_no_ops_are_refused() -> None:
    with pytest.raises(FuselineError, match="no node is called conv") as caught:
        ids_between(CompileRecord(source_nodes=["Conv_0"]), "conv", "Conv_0")
    assert caught.value.code == "E0501" and "Conv_0" in (caught.value.hint or "")
    host = HostOpRecord(node="Unique_5", op_type="Unique", reason="no lowering")
    with pytest.raises(FuselineError, match="is no op of a dispatch"):
        ids_between(CompileRecord(host_ops=[host]), "Unique_5", "Unique_5")


def test_a_plan_holds_what_it_was_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    path.write_text(plan_with(force=[["a.00000000", "b.11111111"]]))
    plan = read_plan(path)
    assert [len(ids) for ids in plan.force] == [2] and not plan.forbid and not plan.groups


def test_less_scratch(tmp_path: Path) -> None:
    for name in ("cpu", "null"):
        target = create_target(f"{name}:{scratch_description(4096, tmp_path)}", 1, "default")
        assert target.description.scratch_bytes_limit == 4096
