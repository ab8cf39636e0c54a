"""Graphviz reads what we write, whatever names have in them."""

from __future__ import annotations

import re
import shutil
import subprocess

import msgspec
import pytest

import fuseline
from fuseline.report.records import CompileRecord
from fuseline.report.viewers.dot import dot
from tests.small_models import attention
from tests.unit.report.records import RECORD

HOSTILE = 'a "quoted\\" name]; } digraph\nx {'


def test_every_op_is_in_its_cluster_and_every_edge_there_once() -> None:
    record = fuseline.compile(attention(2, 5), target="null").record
    text = dot(record)
    assert text.count("subgraph cluster_") == len(record.dispatches)
    members = [member.id for dispatch in record.dispatches for member in dispatch.members]
    assert all(text.count(f'"{id}" [label=') == 1 for id in members)
    edges = [decision for decision in record.decisions if not decision.arms]
    assert text.count(" -> ") == len(edges)


def test_a_missed_edge_says_what_would_change_it() -> None:
    (line,) = [line for line in dot(RECORD).splitlines() if '"%Relu_1" -> "%MatMul_2"' in line]
    assert 'label="consumer-reduces"' in line and "To change it:" in line


def test_names_cannot_leave_their_strings() -> None:
    member = msgspec.structs.replace(RECORD.dispatches[0].members[0], nodes=(HOSTILE,))
    dispatch = msgspec.structs.replace(RECORD.dispatches[0], members=[member])
    text = dot(msgspec.structs.replace(RECORD, model=HOSTILE, dispatches=[dispatch], decisions=[]))
    bare = re.sub(r'"(?:[^"\\]|\\.)*"', "", text)
    assert (
        "digraph" in bare and bare.count("digraph") == 1 and "quoted" not in bare and bare.count("{") == bare.count("}")
    )


def test_an_empty_record() -> None:
    assert dot(CompileRecord()).startswith('digraph "fuseline" {')


def test_graphviz_takes_it() -> None:
    program = shutil.which("dot")
    if program is None:
        pytest.skip("no Graphviz here: apt-get install graphviz")
    subprocess.run([program, "-Tsvg"], input=dot(RECORD), text=True, check=True, capture_output=True)
