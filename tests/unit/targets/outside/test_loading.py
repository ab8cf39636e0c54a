"""Targets from outside: found by path, by folder, by entry point; what does not load says where."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from fuseline.errors import FuselineError
from fuseline.targets import TARGETS, create_target
from fuseline.targets.outside import loading
from fuseline.targets.outside.listing import BUILT_IN, list_targets
from fuseline.targets.outside.named import split_name

TARGET = '''"""A target of a test.

More of it."""

from fuseline.targets.null.counts import counted_kernel
from fuseline.targets.target import Target, TargetDescription


class Mine(Target):
    contract = 1
    suffix = ".lst"

    def __init__(self, name, threads):
        self.description = TargetDescription(name, threads=threads or 1)

    def compile_executables(self, entries, resources, *, splits=False, merges=False):
        return [counted_kernel(entry, "mine", entry.sym_name.data) for entry in entries]

    def assemble(self, schedule, kernels, constants, *, records, metadata):
        return "listing"


def create(variant, threads, numerics):
    return Mine(variant or "mine", threads)
'''


def _file(folder: Path, text: str = TARGET, name: str = "mine.py") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def _package(folder: Path, package: str, entries: str, text: str = TARGET, module: str = "") -> None:
    """An installed package as Python sees one: its module, and a folder of metadata beside it."""
    _file(folder, text, f"{module or package}.py")
    info = folder / f"{package}-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(f"[fuseline.targets]\n{entries}\n")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on the path of modules, as packages are installed to."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    return folder


def _refused(name: str) -> FuselineError:
    with pytest.raises(FuselineError) as caught:
        create_target(name)
    return caught.value


# by path --------------------------------------------------------------------------------------------------------------


def test_a_file_and_a_folder_are_targets_by_their_path(tmp_path: Path):
    file = _file(tmp_path)
    assert create_target(str(file)).description.name == "mine"
    assert create_target(f"{file}:4x4", 3).description.name == "4x4"
    assert create_target(f"{file}:4x4", 3).description.threads == 3
    _file(tmp_path / "pack", 'from .inner import create\n__all__ = ["create"]\n', "__init__.py")
    _file(tmp_path / "pack", TARGET, "inner.py")
    assert create_target(f"{tmp_path / 'pack'}:a:b").description.name == "a:b"


def test_a_path_may_hold_a_colon(tmp_path: Path):
    path = _file(tmp_path / "a:b")
    assert split_name(f"{path}:v") == (str(path), "v")
    assert create_target(f"{path}:v").description.name == "v"


def test_a_file_is_loaded_once_and_anew_when_it_changes(tmp_path: Path):
    path = _file(tmp_path, TARGET + "\nLOADS = []\n")
    first, again = (create_target(str(path)) for _ in range(2))
    assert type(getattr(first, "target")) is type(getattr(again, "target"))  # noqa: B009
    for name in ("left", "rite"):  # as long, and within a second
        _file(tmp_path, TARGET.replace('"mine"', f'"{name}"'))
        assert create_target(str(path)).description.name == name
    assert [item.name for item in tmp_path.iterdir()] == ["mine.py"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = 1\nimport no_such_module\n", "it does not load: ModuleNotFoundError: No module named 'no_such_module'"),
        ("\n\ndef create(:\n", "it does not load: SyntaxError: invalid syntax"),
        ("raise SystemExit(3)\n", "it does not load: SystemExit: 3"),
        ("x = 1\n", "it has no function create: None"),
        ("create = 3\n", "it has no function create: 3"),
        ("class T:\n    def __repr__(self): 1 / 0\ncreate = lambda *_: T()\n", "create() answered <T instance"),
        ("def create(*any): return None\n", "create() answered None, which is no fuseline.targets.target.Target"),
        (TARGET.replace("contract = 1", ""), "it does not say for which contract it was written"),
        (TARGET.replace("contract = 1", "contract = 2"), "it was written for contract 2, this fuseline has contract 1"),
        (TARGET.replace("contract = 1", "contract = 'one'"), "it was written for contract 'one'"),
    ],
)
def test_what_is_no_target_does_not_load(text: str, words: str, tmp_path: Path):
    path = _file(tmp_path, text)
    before = {*sys.modules}
    error = _refused(str(path))
    assert (error.code, error.node) == ("E0801", str(path))
    assert error.message.startswith(words)
    if "it does not load" in words:
        assert not [name for name in {*sys.modules} - before if name.startswith("fuseline_target")]


def test_the_line_at_fault_is_named(tmp_path: Path):
    assert _refused(str(_file(tmp_path, "x = 1\nimport no_such\n"))).message.endswith("(at mine.py:2)")
    assert _refused(str(_file(tmp_path, "\n\ndef create(:\n"))).message.endswith("(at mine.py:3)")
    _file(tmp_path / "pack", "from . import inner\n", "__init__.py")
    _file(tmp_path / "pack", "x = 1\n\ny = x / 0\n", "inner.py")
    assert _refused(str(tmp_path / "pack")).message.endswith("ZeroDivisionError: division by zero (at inner.py:3)")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def create(variant): return None\n", "create() raised TypeError: create() takes 1 positional argument"),
        ("def create(*any): raise SystemExit(1)\n", "create() raised SystemExit: 1 (at mine.py:1)"),
        (TARGET.replace("contract = 1", "@property\n    def contract(self): return 1 / 0"), "create() raised ZeroDiv"),
    ],
)
def test_what_cannot_be_made_is_wrong(text: str, words: str, tmp_path: Path):
    path = _file(tmp_path, text)
    error = _refused(str(path))
    assert (error.code, error.node) == ("E0802", str(path)) and error.message.startswith(words)


def test_a_target_of_a_newer_contract_needs_a_newer_fuseline(tmp_path: Path):
    assert _refused(str(_file(tmp_path, TARGET.replace("= 1", "= 2", 1)))).hint == "it needs a newer fuseline"
    older = _refused(str(_file(tmp_path, TARGET.replace("= 1", "= -1", 1)))).hint or ""
    assert older.startswith("set contract = 1 in its class")


@pytest.mark.parametrize("name", ["no/such.py", "such.py", "./such", "./", "a\0b.py", f"./{'a' * 5000}", "./:x"])
def test_a_path_without_a_target_is_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    error = _refused(name)
    assert (error.code, error.hint) == ("E0801", "give a Python file, or a folder with an __init__.py")


def test_a_file_that_is_no_text_is_refused(tmp_path: Path):
    path = tmp_path / "mine.py"
    path.write_bytes(b"x = 1\n\xff\xfe\0")
    assert _refused(str(path)).code == "E0801"


def test_an_unknown_name_says_which_there_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    assert _refused("npu").hint == f"use one of {', '.join(TARGETS)}, or the path of a target's code"
    _file(tmp_path, name="npu.py")
    assert (_refused("npu").hint or "").endswith("such as npu.py")
    (tmp_path / "pack").mkdir()
    assert (_refused("pack").hint or "").endswith("such as ./pack")


# by entry point -------------------------------------------------------------------------------------------------------


def test_installed_packages_give_their_targets(site: Path):
    _package(site, "outside_a", "npu-a = outside_a\nnpu-b = outside_a:create")
    assert create_target("npu-a").description.name == "mine"
    assert create_target("npu-b:4x4", 2).description.name == "4x4"
    infos = {info.name: info for info in list_targets(TARGETS)}
    assert infos["npu-a"].origin == "outside_a 1.2: outside_a" and infos["npu-a"].summary == "A target of a test."
    assert (infos["npu-b"].writes, infos["npu-b"].runs, infos["npu-b"].error) == (".lst", False, None)
    assert "npu-a, npu-b" in (_refused("npu-c").hint or "")


def test_two_packages_with_one_name_are_refused(site: Path):
    _package(site, "outside_c", "npu = outside_c\nfine = outside_c")
    _package(site, "outside_d", "npu = outside_d")
    error = _refused("npu")
    assert (error.code, error.node) == ("E0801", "npu")
    assert error.message == (
        "2 packages have a target of this name: outside_c 1.2: outside_c, outside_d 1.2: outside_d"
    )
    assert create_target("fine").description.name == "mine"
    errors = [info.error for info in list_targets(TARGETS) if info.name == "npu"]
    assert len(errors) == 2 and all(one is not None and one["code"] == "E0801" for one in errors)


@pytest.mark.parametrize("name", TARGETS)
def test_the_names_of_the_tree_are_taken(name: str, site: Path):
    _package(site, "outside_e", f"{name} = outside_e")
    assert create_target(name).description.name != "mine"
    (info,) = [info for info in list_targets(TARGETS) if info.name == name and info.origin != BUILT_IN]
    assert info.error is not None and info.error["code"] == "E0801"
    assert info.error["message"] == f"fuseline has a target {name} of its own"
    assert info.error["node"] == f"{name}, outside_e 1.2: outside_e"


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("npu = no_such_package", "it does not load: ModuleNotFoundError: No module named 'no_such_package'"),
        ("npu = outside_f:nothing", "it does not load: AttributeError: module 'outside_f' has no attribute 'nothing'"),
        ("npu = json", "it has no function create: None"),
    ],
)
def test_an_entry_without_a_target_is_refused_by_its_package(entry: str, words: str, site: Path):
    _package(site, "outside_f", entry)
    error = _refused("npu")
    assert (error.code, error.node) == ("E0801", f"npu, outside_f 1.2: {entry.partition(' = ')[2]}")
    assert error.message.startswith(words)


def test_a_name_that_cannot_be_given_is_refused(monkeypatch: pytest.MonkeyPatch):
    entry = EntryPoint("My Target", "json", loading.GROUP)
    monkeypatch.setattr(loading, "entry_points", lambda group: [entry])
    error = next(info.error for info in list_targets(TARGETS) if info.name == "My Target")
    assert error is not None and error["message"] == "'My Target' cannot be the name of a target"


def test_without_packages_there_are_those_of_the_tree():
    infos = list_targets(TARGETS)
    assert [(info.name, info.origin, info.error) for info in infos] == [(name, BUILT_IN, None) for name in TARGETS]
    assert all(info.summary.endswith(".") for info in infos)
    assert {info.name: (info.runs, info.writes) for info in infos} == {
        "cpu": (True, ".fuse"),
        "interpreter": (True, ""),
        "iree": (True, ".fuse"),
        "null": (False, ""),
    }
