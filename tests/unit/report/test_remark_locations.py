"""Remarks point to lines of a list of nodes, and LLVM's own reader takes them."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import msgspec
import pytest

from fuseline.report.remark_locations import Listing, Location
from fuseline.report.remarks import yaml_remarks
from tests.unit.report.records import RECORD

NODES = ["Conv_0", "Relu_1", "MatMul_2"]


def test_the_first_node_with_a_place_is_meant() -> None:
    listing = Listing("m.nodes.txt", [*NODES, "a\nb", "Conv_0"])
    assert listing.location(["nobody", "Relu_1", "Conv_0"]) == Location("m.nodes.txt", 2, 0)
    assert listing.location(["Conv_0"]) == Location("m.nodes.txt", 1, 0) and listing.location(["nobody"]) is None
    assert listing.location(["dir/m.mlir:12:7"]) == Location("dir/m.mlir", 12, 7)
    assert listing.text.splitlines() == [*NODES, "a?b", "Conv_0"]


def test_llvms_reader_takes_them(tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    readers = sorted(Path("/usr/lib").glob("llvm-*/share/opt-viewer/optrecord.py"))
    if not readers:
        pytest.skip("no LLVM opt-viewer here: apt-get install llvm-tools")
    path = tmp_path / "r.opt.yaml"
    path.write_text(yaml_remarks(RECORD.decisions, listing=Listing("r.nodes.txt", NODES)))
    sys.path.insert(0, str(readers[-1].parent))
    try:
        spec = importlib.util.spec_from_file_location("optrecord", readers[-1])
        assert spec is not None and spec.loader is not None
        reader = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(reader)
    finally:
        sys.path.remove(str(readers[-1].parent))
    _, remarks, by_line = reader.get_remarks(str(path))
    assert len(remarks) == len(RECORD.decisions)
    assert {line for lines in by_line.values() for line in lines} <= {1, 2, 3} and list(by_line) == ["r.nodes.txt"]


def test_names_do_not_leave_the_place() -> None:
    yaml = pytest.importorskip("yaml")
    hostile = "x', Line: 7 } #"
    decision = msgspec.structs.replace(RECORD.decisions[0], consumer_nodes=(hostile,))
    text = yaml_remarks([decision], listing=Listing(hostile, [hostile])).replace("--- !Passed", "---")
    assert yaml.safe_load(text.removesuffix("...\n"))["DebugLoc"] == {"File": hostile, "Line": 1, "Column": 0}
