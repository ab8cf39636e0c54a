"""Discovery of passes by file name, and the pipeline's text."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from fuseline.errors import FuselineError
from fuseline.passes.registry import checked, discover, list_passes, load_pass, make_pass, parse_passes


@dataclass(frozen=True)
class _GoodPass(ModulePass):
    name = "good"

    def apply(self, ctx: Context, op: ModuleOp) -> None: ...


class _UndecoratedPass(_GoodPass):
    name = "undecorated"


def test_every_file_that_exports_is_a_loadable_pass():
    infos = list_passes()
    assert {"canonicalize", "cse", "dead-code", "fold-constants", "generalize-named-ops"} <= {
        info.name for info in infos
    }
    for info in infos:
        assert issubclass(load_pass(info.name), ModulePass)
        assert info.summary and not info.summary.startswith(info.name)


def test_listing_imports_no_pass():
    code = """if True:
        import sys
        from fuseline.passes.registry import list_passes
        assert len(list_passes()) > 4
        loaded = [name for name in sys.modules if name.startswith("fuseline.passes.") and name.count(".") > 2]
        assert not loaded, loaded
    """
    subprocess.run([sys.executable, "-c", code], check=True)


def test_two_groups_with_one_pass_name_are_refused(tmp_path: Path):
    for group in ("a", "b"):
        (tmp_path / group).mkdir()
        (tmp_path / group / "twice.py").write_text("EXPORT = None\n")
    with pytest.raises(FuselineError, match="E0901: two passes are called twice: in a/ and in b/"):
        discover(tmp_path)


def test_files_without_export_are_no_passes(tmp_path: Path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "helper.py").write_text("def EXPORTED(): ...\n    EXPORT = 1\n")
    (tmp_path / "a" / "_private.py").write_text("EXPORT = None\n")
    (tmp_path / "a" / "sink_pads.py").write_text("EXPORT = None\n")
    assert list(discover(tmp_path)) == ["sink-pads"]


@pytest.mark.parametrize(
    ("name", "export", "message"),
    [
        ("good", None, "no ModulePass"),
        ("good", dict, "no ModulePass"),
        ("good", _GoodPass(), "no ModulePass"),
        ("better", _GoodPass, "is called good"),
        ("undecorated", _UndecoratedPass, "no frozen dataclass"),
    ],
)
def test_an_export_of_another_kind_or_name_is_refused(name: str, export: object, message: str):
    with pytest.raises(FuselineError, match=f"E0901.*{message}") as caught:
        checked(name, export)
    assert caught.value.node == name
    assert checked("good", _GoodPass) is _GoodPass


def test_an_unknown_pass_names_the_nearest():
    with pytest.raises(FuselineError, match=r"E0303 \[canonicalise\].*did you mean canonicalize"):
        parse_passes("cse,canonicalise")
    with pytest.raises(FuselineError, match=r"did you mean sink-expand-shapes or sink-collapse-shapes"):
        load_pass("sink-shapes")
    with pytest.raises(FuselineError, match="--list-passes"):
        load_pass("zzzz")


@pytest.mark.parametrize(
    ("pipeline", "message"),
    [
        ("cse{speed=1}", "speed.*it has no options"),
        ("deduplicate-executables{level=3}", "its options are level"),
        ("cse{", ""),
        ("cse canonicalize", ""),
        ("cse;canonicalize", ""),
        ("{}", ""),
    ],
)
def test_a_wrong_pipeline_is_refused(pipeline: str, message: str):
    with pytest.raises(FuselineError, match=f"E0304.*{message}"):
        parse_passes(pipeline)


def test_a_phase_takes_no_options_and_says_what_it_is_made_of():
    phases = {"tidy": ("cse", "canonicalize")}
    assert [one.name for one in parse_passes("tidy", phases)] == ["cse", "canonicalize"]
    with pytest.raises(FuselineError, match=r"E0304 \[tidy\].*phase.*cse, canonicalize"):
        parse_passes("cse,tidy{level=none}", phases)


def test_a_pipeline_gives_passes_in_order_with_their_options():
    passes = parse_passes("cse,deduplicate-executables{level=none},cse")
    assert [step.name for step in passes] == ["cse", "deduplicate-executables", "cse"]
    assert str(passes[1]) == 'deduplicate-executables{level="none"}'
    assert parse_passes("") == ()
    assert make_pass("cse").name == "cse"
