"""Decisions are grouped by what they say, not by where."""

from __future__ import annotations

from fuseline.report.page.decision_groups import decision_groups
from fuseline.report.records import CompileRecord, Decision


def _decision(number: int, code: str = "two-roots", verdict: str = "missed", **fields: object) -> Decision:
    ends = {"producer": f"contraction.0000000{number}", "consumer": f"convolution.1111111{number}-2"}
    kinds = {"producer_op": "contraction", "consumer_op": "convolution"}
    return Decision(rule="root-chain", verdict=verdict, code=code, **{**ends, **kinds, **fields})  # type: ignore[arg-type]


def test_ids_and_numbers_do_not_tell_decisions_apart() -> None:
    details = [
        "contraction.0a0b0c0d and convolution.11223344-2 take 1,024 bytes",
        "contraction.99887766 and convolution.01234567 take 12 bytes",
    ]
    record = CompileRecord(decisions=[_decision(i, detail=detail) for i, detail in enumerate(details)])
    (group,) = decision_groups(record)
    assert group["edges"] == [0, 1] and group["ends"] == "contraction -> convolution" and group["detail"] == details[0]


def test_other_codes_rules_verdicts_and_arms_are_other_groups() -> None:
    record = CompileRecord(
        decisions=[
            _decision(0, verdict="fused", code="fused"), _decision(1), _decision(2, code="scratch"), _decision(3),
            _decision(4, arms=True), _decision(5, detail="for another reason"),
        ]
    )  # fmt: skip
    groups = decision_groups(record)
    assert groups[0]["edges"] == [1, 3] and len(groups) == 5
    assert groups[-1]["verdict"] == "fused"
    assert sorted(number for group in groups for number in group["edges"]) == list(range(6))


def test_the_gain_is_what_was_weighed() -> None:
    losses = [{"predicted_loss_ns": 4.0}, {"predicted_loss_ns": -1.5}, {}]
    record = CompileRecord(decisions=[_decision(i, numbers=numbers) for i, numbers in enumerate(losses)])
    assert [group["gain"] for group in decision_groups(record)] == [-2.5]
