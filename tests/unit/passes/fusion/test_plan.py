"""The plan file: what is read, what is refused and by which words, and that what is written is read back."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuseline.errors import FuselineError
from fuseline.passes.fusion.plan import FusionPlan, parse_plan, plan_text, read_plan, spelled
from fuseline.passes.fusion.tuned_choices import TunedChoices
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
        ("version = ", "not TOML: Invalid value (at end of document)"),
        ("", "version is None, this fuseline reads 1"),
        ("version = 2", "version is 2, this fuseline reads 1"),
        (HEAD + "grupo = 1", "the plan has no field 'grupo'"),
        (HEAD + 'threads = "two"', "threads is 'two', not a number"),
        (HEAD + "threads = true", "threads is True, not a number"),
        (HEAD + "model = 3", "model is 3, not a text"),
        (HEAD + "group = 3", "group is not a list: write [[group]] above each group"),
        (HEAD + "group = [3]", "group 1 is not a table: write [[group]] above it"),
        (HEAD + "[[group]]\nops = []", "group 1 has no ops"),
        (HEAD + "[[group]]\n", "group 1 has no ops"),
        (HEAD + '[[group]]\nops = "aa"', "group 1 is not a list of ops such as 'convolution.96eabbfb'"),
        (HEAD + "[[group]]\nops = [3]", "group 1 is not a list of ops such as 'convolution.96eabbfb'"),
        (HEAD + '[[group]]\nops = ["copy."]', "group 1 is not a list of ops such as 'convolution.96eabbfb'"),
        (
            HEAD + '[[group]]\nops = ["a"]\nforce = []',
            "group 1 has no field 'force'; force and forbid stand above the first [[group]]",
        ),
        (HEAD + '[[group]]\nops = ["a", "copy.a"]', "group 1 has a twice"),
        (GROUPS + '[[group]]\nops = ["bb-2"]', "bb-2 is in two groups"),
        (HEAD + "force = 3", "force is not a list"),
        (HEAD + 'force = ["a", "b"]', "force 1 is not a list of ops such as 'convolution.96eabbfb'"),
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
    with pytest.raises(FuselineError) as caught:
        parse_plan(text, "p.toml")
    error = caught.value
    assert (error.code, error.node, error.message) == ("E0701", "p.toml", words)
    assert error.hint is not None and error.hint.startswith("docs/plans.md describes the format")


def test_a_plan_from_nowhere_says_so():
    with pytest.raises(FuselineError) as caught:
        parse_plan("version = 3")
    assert caught.value.node == "<plan>"


@pytest.mark.parametrize(
    ("content", "reason"), [(None, "No such file or directory"), (b"\xff\xfe", "it is not UTF-8 text")]
)
def test_a_file_that_cannot_be_read_is_refused(content: bytes | None, reason: str, tmp_path: Path):
    path = tmp_path / "p.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(FuselineError) as caught:
        read_plan(path)
    error = caught.value
    assert (error.code, error.node, error.message) == ("E0701", str(path), f"cannot read: {reason}")
    assert error.hint is not None and error.hint.startswith("docs/plans.md describes the format")


def test_errors_name_the_file(tmp_path: Path):
    path = tmp_path / "p.toml"
    path.write_text("version = 7")
    with pytest.raises(FuselineError) as caught:
        read_plan(path)
    assert caught.value.node == str(path)
    path.write_text(GROUPS, encoding="utf-8")
    assert read_plan(path).groups == (("aa", "bb-2"), ("cc",))


WRITTEN = """\
version = 1
model = "a \\"b\\"\\\\?.onnx"
target = "cpu:avx2"
threads = 3
fusion = "aggressive"
pipeline = "p1"
graph = "f1"

force = []
forbid = []

[[group]]
ops = [
    "copy.a",  # first?[[group]], second
    "copy.b",
]

[[group]]
ops = [
    "copy.c",
]
"""


def test_what_is_written_is_read_back():
    record = CompileRecord(
        model='/some/where/a "b"\\\n.onnx',
        target="cpu:avx2",
        threads=3,
        fusion="aggressive",
        pipeline="p1",
        fingerprint="f1",
        groups=[("copy.a", "copy.b"), ("copy.c",)],
        fusion_nodes={
            "copy.a": FusionNodeRecord(kind="copy", nodes=("first\n[[group]]", "second")),
            "copy.b": FusionNodeRecord(kind="copy", nodes=()),
        },
    )
    text = plan_text(record)
    head, _, rest = text.partition("version = ")
    assert all(line.startswith("# ") for line in head.splitlines()) and "docs/plans.md" in head
    assert f"version = {rest}" == WRITTEN
    plan = parse_plan(text)
    assert plan.groups == (("a", "b"), ("c",))
    assert (plan.model, plan.target, plan.threads, plan.fusion) == ('a "b"\\?.onnx', "cpu:avx2", 3, "aggressive")
    assert (plan.pipeline, plan.graph) == ("p1", "f1")


def test_a_plan_that_is_spelled_reads_the_same() -> None:
    plan = FusionPlan(
        groups=(("11", "22"), ("33",)),
        force=(("11", "22"),),
        forbid=(("22", "33"), ("11", "33")),
        tuned=TunedChoices(dedup="none", kernels={"a.1": "tile=2"}),
        target="cpu",
        threads=3,
    )
    record = CompileRecord(
        target="cpu", threads=3, fusion_nodes={"elementwise.33": FusionNodeRecord(kind="elementwise", nodes=("odd",))}
    )
    text = spelled(plan, record, "# told\n")
    assert parse_plan(text) == plan
    assert text.startswith("# told\nversion = 1\n") and '"elementwise.33",  # odd' in text
