"""A program that is listed and not run is its own artifact and session, and says what goes in and comes out."""

from __future__ import annotations

import fuseline
from fuseline.targets.listed_program import ListedProgram
from fuseline.targets.null.target import NullProgram
from fuseline.targets.outside.program import OutsideProgram
from tests.small_models import SMALL_MODELS


def test_it_answers_for_itself():
    model = SMALL_MODELS["attention"]()
    session = fuseline.compile(model, target="null").session
    assert isinstance(session, NullProgram) and session.artifact is session.session(threads=3) is session
    run = fuseline.compile(model)
    assert [spec.name for spec in session.inputs] == [spec.name for spec in run.inputs]
    assert [spec.name for spec in session.outputs] == [spec.name for spec in run.outputs]


def test_targets_add_what_they_make():
    counted = fuseline.compile(SMALL_MODELS["attention"](), target="null").session
    assert isinstance(counted, NullProgram)
    made = OutsideProgram(counted.program, b"records", {}, b"content", ".bin", "npu", threads=2)
    assert isinstance(made, ListedProgram)
    assert (made.records, made.content, made.suffix, made.target, made.threads) == (
        b"records", b"content", ".bin", "npu", 2,
    )  # fmt: skip
