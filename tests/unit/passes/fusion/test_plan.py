"""The plan file: what is read, what is refused and by which words, and that what is written is read back."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuseline.errors import FuselineError
from fuseline.passes.fusion.plan import FusionPlan, parse_plan, plan_text, read_plan
from fuseline.report.records import CompileRecord, FusionNodeRecord

HEAD = "version = 1\n"
GROUPS = HEAD + '[[group]]\nops = ["contraction.aa", "bb-2"]\n[[group]]\nops = ["cc"]\n'


def test_ops_are_known_by_their_ids():
    text = HEAD + 'threads = 2\nforce = [["copy.cc", "dd"]]\nforbid = [["aa", "x.cc"]]\n' + GROUPS.removeprefix(HEAD)
    plan = FusionPlan(groups=(("aa", "bb-2"), ("cc",)), force=(("cc", "dd"),), forbid=(("aa", "cc"),), threads=2)
    assert parse_plan(text) == plan
    assert set(plan.ids) == {"aa", "bb-2", "cc", "dd"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("version = ", "not TOML"),
        ("", "version is None, this fuseline reads 1"),
        ("version = 2", "version is 2"),
        (HEAD + "grupo = 1", "the plan has no field 'grupo'"),
        (HEAD + 'threads = "two"', "threads is 'two', not a number"),
        (HEAD + "threads = true", "threads is True"),
        (HEAD + "model = 3", "model is 3, not a text"),
        (HEAD + "group = 3", r"write \[\[group\]\] above each group"),
        (HEAD + "group = [3]", "group 1 is not a table"),
        (HEAD + "[[group]]\nops = []", "group 1 has no ops"),
        (HEAD + "[[group]]\n", "group 1 has no ops"),
        (HEAD + '[[group]]\nops = "aa"', "group 1 is not a list of ops"),
        (HEAD + "[[group]]\nops = [3]", "group 1 is not a list of ops"),
        (HEAD + '[[group]]\nops = ["copy."]', "group 1 is not a list of ops"),
        (HEAD + '[[group]]\nops = ["a"]\nforce = []', "force and forbid stand above the first"),
        (HEAD + '[[group]]\nops = ["a", "copy.a"]', "group 1 has a twice"),
        (GROUPS + '[[group]]\nops = ["bb-2"]', "bb-2 is in two groups"),
        (HEAD + "force = 3", "force is not a list"),
        (HEAD + 'force = ["a", "b"]', "force 1 is not a list of ops"),
        (HEAD + 'force = [["a"]]', "force 1 names fewer than two ops"),
        (HEAD + 'forbid = [["a", "b"], []]', "forbid 2 names fewer than two ops"),
        (HEAD + 'forbid = [["a", "a"]]', "forbid 1 has a twice"),
        (
            HEAD + 'force = [["a", "b", "c"]]\nforbid = [["c", "d", "b"]]',
            "force 1 wants b and c together, forbid 1 wants them apart",
        ),
    ],
)
def test_a_malformed_plan_is_refused_with_the_entry_at_fault(text: str, words: str):
    with pytest.raises(FuselineError, match=words) as caught:
        parse_plan(text, "p.toml")
    assert (caught.value.code, caught.value.node) == ("E0701", "p.toml")


@pytest.mark.parametrize("content", [None, b"\xff\xfe"])
def test_a_file_that_cannot_be_read_is_refused(content: bytes | None, tmp_path: Path):
    path = tmp_path / "p.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(FuselineError) as caught:
        read_plan(path)
    assert (caught.value.code, caught.value.node) == ("E0701", str(path))


def test_what_is_written_is_read_back():
    record = CompileRecord(
        model='/some/where/a "b"\\\n.onnx',
        target="cpu:avx2",
        threads=3,
        fusion="aggressive",
        pipeline="p1",
        fingerprint="f1",
        groups=[("copy.a", "copy.b"), ("copy.c",)],
        fusion_nodes={"copy.a": FusionNodeRecord(kind="copy", nodes=("first\n[[group]]", "second"))},
    )
    text = plan_text(record)
    plan = parse_plan(text)
    assert plan.groups == (("a", "b"), ("c",))
    assert (plan.model, plan.target, plan.threads, plan.fusion) == ('a "b"\\?.onnx', "cpu:avx2", 3, "aggressive")
    assert (plan.pipeline, plan.graph) == ("p1", "f1")
    assert '"copy.a",  # first?[[group]], second' in text
