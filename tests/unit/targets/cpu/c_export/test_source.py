"""The C source of a program made by hand: names, sizes and their bounds, tensors, what the file is checked by."""

from __future__ import annotations

import re
from typing import Any

import pytest

from fuseline.buffers import BufferRef, TensorSpec
from fuseline.runtime.artifact import Artifact
from fuseline.runtime.program import Arm, Command, Program
from fuseline.size_requirement import SizeRequirement
from fuseline.targets.cpu.c_export.source import identifier, sources

N, ROWS = ("sum", ((1, "n"),)), ("sum", ((1, "batch size"),))
FILE = bytes(range(100))


def _artifact(**more: Any) -> Artifact:
    steps = (Command((Arm(16, (BufferRef("input"), BufferRef("output")), (N,), 1),)),)
    given: dict[str, Any] = {
        "steps": steps,
        "inputs": (TensorSpec("x.1", "float32", (N, 3)),),
        "outputs": (TensorSpec("y", "int64", ()), TensorSpec("z", "int8", (ROWS, 2, 5))),
        "symbols": {"n": (1, 9), "batch size": (0, None)},
        "scratch_bytes": 65,
        "input_alignment": 32,
        **more,
    }
    return Artifact(Program(**given), b"\xc3" * 24, {}, "x86_64", fixups=((8, 16),))


def _texts(**more: Any) -> dict[str, str]:
    return sources("net", _artifact(**more), FILE, [4096, 8192])


def test_files_are_named_after_the_program_and_complete():
    texts = _texts()
    assert set(texts) == {"net.c", "net.h", "example.c"}
    assert not any(re.search("@[A-Z_]+@", text) for text in texts.values())
    assert '#include "net.h"' in texts["net.c"] and "net_create" in texts["net.h"] and "net_run" in texts["example.c"]


def test_sizes_are_fields_with_their_bounds():
    texts = _texts()
    assert "  int64_t size_n; /* 1 to 9 */\n  int64_t size_batch_size; /* 0 to 2147483647 */" in texts["net.h"]
    assert "low[] = {INT64_C(1), INT64_C(0), 0}, high[] = {INT64_C(9), INT64_C(2147483647), 0};" in texts["net.c"]


def test_fields_that_would_have_one_name_have_two():
    header = _texts(symbols={"a.b": (1, 2), "a-b": (3, 4), "n": (1, 9), "batch size": (0, None)})["net.h"]
    assert "int64_t size_a_b; /* 1 to 2 */" in header and "int64_t size_a_b_; /* 3 to 4 */" in header


def test_a_program_of_fixed_sizes_has_no_fields():
    fixed = _texts(steps=(), symbols={}, inputs=(TensorSpec("x", "float32", (2,)),), outputs=())
    assert (
        "int64_t none; /* all sizes are fixed */" in fixed["net.h"] and "low[] = {0}, high[] = {0};" in fixed["net.c"]
    )


def test_tensors_are_described_by_number():
    header = _texts()["net.h"]
    lines = ["   input 0: x_1, float32[n, 3]", "   output 0: y, int64[]", "   output 1: z, int8[batch_size, 2, 5]"]
    assert "\n".join(lines) in header
    assert "net_INPUTS = 1, net_OUTPUTS = 2, net_MOST_DIMENSIONS = 3" in header and "aligned to 32 bytes" in header


def test_requirements_are_what_must_hold_of_sizes():
    assert re.search(r"return 1;", _texts()["net.c"])
    sizes = (
        SizeRequirement(N, 4, "node"),
        SizeRequirement(ROWS, N, "node", relation="at_least"),
        SizeRequirement(N, 1, "node", relation="differ"),
    )
    text = _texts(requirements=sizes)["net.c"]
    assert re.search(r"return v\[\d\] == INT64_C\(4\) && v\[\d\] >= v\[\d\] && v\[\d\] != INT64_C\(1\);", text)


def test_the_file_is_known_by_its_start_and_length():
    text = _texts()["net.c"]
    assert f"FILE_BYTES = INT64_C({len(FILE)});" in text
    assert f"file_start[START_BYTES] = {{{', '.join(map(str, range(64)))}}};" in text
    assert "CODE_BYTES = 24, CONSTANTS = 2" in text and "constant_at[] = {INT64_C(4096), INT64_C(8192), 0};" in text
    assert "fixups[][2] = {{8, 16}, {-1, 0}};" in text


@pytest.mark.parametrize(
    ("text", "word"), [("net", "net"), ("a b.c-d", "a_b_c_d"), ("1x", "m_1x"), ("_x", "m__x"), ("größe", "gr__e")]
)
def test_names_become_identifiers(text: str, word: str):
    assert identifier(text) == word
